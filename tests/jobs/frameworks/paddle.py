"""Fits a line with Paddle: each process has its own points, and all end with the same weights."""

import json
import os

import paddle
import paddle.distributed as dist

dist.init_parallel_env()
rank, world = dist.get_rank(), dist.get_world_size()
paddle.seed(rank)
inputs = paddle.rand([64, 1])
targets = 3 * inputs + 1
model = paddle.DataParallel(paddle.nn.Linear(1, 1))
optimizer = paddle.optimizer.SGD(learning_rate=0.3, parameters=model.parameters())
losses = []
for _ in range(100):
    loss = paddle.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(float(loss))
weights = [weight.item() for weight in model.parameters()]
result = {"rank": rank, "world": world, "first": losses[0], "last": losses[-1], "weights": weights, "version": paddle.__version__}
with open(f"{os.environ['INFRA_OUTPUT_DIR']}/result.{rank}.json", "w") as file:
    json.dump(result, file)
