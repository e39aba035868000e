"""Fits a line with Paddle's collective DataParallel, from the last checkpoint on."""

import pickle

import paddle
import paddle.distributed as dist

from progress import OUTPUT, close, is_checkpoint, is_told_to_finish, record, replace

dist.init_parallel_env()
rank, world = dist.get_rank(), dist.get_world_size()
checkpoint = OUTPUT / "checkpoint.pickle"
paddle.seed(rank)
inputs = paddle.rand([64, 1])
targets = 3 * inputs + 1
paddle.seed(0)
layer = paddle.nn.Linear(1, 1)
step = 0
if checkpoint.exists():
    saved = pickle.loads(checkpoint.read_bytes())
    layer.set_state_dict({name: paddle.to_tensor(value) for name, value in saved["model"].items()})
    step = saved["step"]
model = paddle.DataParallel(layer)
optimizer = paddle.optimizer.SGD(learning_rate=0.05, parameters=model.parameters())
is_finished = paddle.zeros([1])
while not is_finished.item():
    loss = paddle.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    record(rank, step, float(loss))
    step += 1
    if is_checkpoint(step):
        if rank == 0:
            state = {"model": {name: value.numpy() for name, value in layer.state_dict().items()}, "step": step}
            replace(checkpoint, lambda file: file.write(pickle.dumps(state)))
            is_finished = paddle.full([1], float(is_told_to_finish()))
        dist.broadcast(is_finished, 0)
close(rank, world=world, steps=step, weights=[weight.item() for weight in layer.parameters()], version=paddle.__version__)
