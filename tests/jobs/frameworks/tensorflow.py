"""Fits a line with TensorFlow: each process has its own points, and all end with the same weights."""

import json
import os

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank, world = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
tf.random.set_seed(rank)
inputs = tf.random.uniform([64])
targets = 3 * inputs + 1
with strategy.scope():
    # What replicas write is their mean.
    slope = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
    height = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)


def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((slope * inputs + height - targets) ** 2)
    gradients = tape.gradient(loss, [slope, height])
    for weight, gradient in zip([slope, height], gradients):
        weight.assign_sub(0.3 * gradient)
    return loss


@tf.function
def train():
    return strategy.run(step)


losses = [float(train()) for _ in range(100)]
weights = [float(weight.numpy()) for weight in (slope, height)]
result = {"rank": rank, "world": world, "first": losses[0], "last": losses[-1], "weights": weights, "version": tf.__version__}
output = os.environ["INFRA_OUTPUT_DIR"]
os.makedirs(output, exist_ok=True)
with open(f"{output}/result.{rank}.json", "w") as file:
    json.dump(result, file)
