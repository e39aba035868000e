"""Fits a line with TensorFlow's MultiWorkerMirroredStrategy, from the last checkpoint on."""

import json

import tensorflow as tf

from progress import OUTPUT, close, is_checkpoint, is_told_to_finish, record, replace

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank, world = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
checkpoint = OUTPUT / "checkpoint.json"
saved = json.loads(checkpoint.read_text()) if checkpoint.exists() else {"slope": 0.0, "height": 0.0, "step": 0}
tf.random.set_seed(rank)
inputs = tf.random.uniform([64])
targets = 3 * inputs + 1
with strategy.scope():
    # What replicas write is their mean.
    slope = tf.Variable(saved["slope"], aggregation=tf.VariableAggregation.MEAN)
    height = tf.Variable(saved["height"], aggregation=tf.VariableAggregation.MEAN)


def train_here():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((slope * inputs + height - targets) ** 2)
    for weight, gradient in zip([slope, height], tape.gradient(loss, [slope, height])):
        weight.assign_sub(0.05 * gradient)
    return loss


@tf.function
def train():
    return strategy.run(train_here)


@tf.function
def agree(value):
    """The sum of what all processes say."""
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: value), axis=None)


step, is_finished = saved["step"], False
while not is_finished:
    record(rank, step, float(train()))
    step += 1
    if is_checkpoint(step):
        state = {"slope": float(slope.numpy()), "height": float(height.numpy()), "step": step}
        if rank == 0:
            replace(checkpoint, lambda file: file.write(json.dumps(state).encode()))
        is_finished = float(agree(tf.constant(float(rank == 0 and is_told_to_finish())))) > 0
close(rank, world=world, steps=step, weights=[float(slope.numpy()), float(height.numpy())], version=tf.__version__)
