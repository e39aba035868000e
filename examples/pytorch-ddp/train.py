"""Fits a line with as many processes as torchrun starts, and leaves the result where `infra job fetch` finds it.

Training goes on from the last checkpoint, so that a machine that is taken away costs an epoch and not the day.
"""

import json
import os
import pathlib

import torch
import torch.distributed as dist

EPOCHS = 100


def main():
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    output = pathlib.Path(os.environ["INFRA_OUTPUT_DIR"])
    checkpoint = output / "checkpoint.pt"

    # Every process has points of its own: what they agree on is learnt from all.
    torch.manual_seed(rank)
    inputs = torch.rand(64, 1, device=device)
    targets = 3 * inputs + 1
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    first_epoch = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device)
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first_epoch = saved["epoch"] + 1
    losses = []
    for epoch in range(first_epoch, EPOCHS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if rank == 0 and epoch % 10 == 9:
            part = checkpoint.with_suffix(".part")
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            # Whoever is killed while writing leaves the last good one; what a rename shows is on the disk.
            with part.open("wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
            part.rename(checkpoint)
            print(f"epoch {epoch}: loss {loss.item():.5f}, {world} processes", flush=True)
    weights = [weight.item() for weight in model.parameters()]
    result = {
        "rank": rank,
        "world": world,
        "first": losses[0] if losses else None,
        "last": losses[-1] if losses else None,
        "weights": weights,
        "version": torch.__version__,
    }
    (output / f"result.{rank}.json").write_text(json.dumps(result))
    dist.destroy_process_group()


main()
