"""Fits a line with PyTorch's DistributedDataParallel, from the last checkpoint on. The argument is the learning rate."""

import sys

import torch
import torch.distributed as dist

from progress import OUTPUT, close, is_checkpoint, is_told_to_finish, record, replace

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
checkpoint = OUTPUT / "checkpoint.pt"
torch.manual_seed(rank)
inputs = torch.rand(64, 1)
targets = 3 * inputs + 1
# The same weights in every attempt that begins without a checkpoint.
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[1]))
step = 0
if checkpoint.exists():
    saved = torch.load(checkpoint)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    step = saved["step"]
is_finished = torch.zeros(1)
while not is_finished:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    record(rank, step, loss.item())
    step += 1
    if is_checkpoint(step):
        if rank == 0:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            replace(checkpoint, lambda file: torch.save(state, file))
            is_finished.fill_(is_told_to_finish())
        dist.broadcast(is_finished, 0)
weights = [weight.item() for weight in model.parameters()]
dist.destroy_process_group()
close(rank, world=world, steps=step, weights=weights, version=torch.__version__)
