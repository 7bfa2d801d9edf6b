import multiprocessing
import os
import sys


def work(rank, world):
    import torch
    import training

    torch.distributed.init_process_group("gloo", f"file://{os.getcwd()}/group", rank=rank, world_size=world)
    training.train()
    torch.distributed.destroy_process_group()
    sys.exit(rank)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=work, args=(rank, 2)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    print("ended with", [process.exitcode for process in ranks])
