"""Fits a line with TensorFlow's ParameterServerStrategy: the first worker is the coordinator, the others and the parameter servers serve."""

import json
import os

import tensorflow as tf

from progress import OUTPUT, close, is_checkpoint, is_told_to_finish, record, replace

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type != "chief":
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc")
    server.join()
checkpoint = OUTPUT / "checkpoint.json"
saved = json.loads(checkpoint.read_text()) if checkpoint.exists() else {"weight": 0.0, "step": 0}
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weight = tf.Variable(saved["weight"])


@tf.function
def train():
    def train_here():
        loss = (weight - 3.0) ** 2
        weight.assign_sub(0.02 * (weight - 3.0))
        return loss

    return strategy.run(train_here)


step = saved["step"]
while True:
    loss = coordinator.schedule(train)
    coordinator.join()
    record(0, step, float(loss.fetch()))
    step += 1
    if is_checkpoint(step):
        state = {"weight": float(weight.numpy()), "step": step}
        replace(checkpoint, lambda file: file.write(json.dumps(state).encode()))
        if is_told_to_finish():
            break
servers = len(json.loads(os.environ["TF_CONFIG"])["cluster"]["ps"])
close(0, world=servers, steps=step, weights=[float(weight.numpy())], version=tf.__version__)
