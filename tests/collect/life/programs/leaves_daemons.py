import multiprocessing
import time

import training


def serve(started):
    training.train()
    started.set()
    time.sleep(1_000)  # Python ends it


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    context.Process(target=serve, args=(started,), daemon=True).start()
    started.wait()
    training.train()
    print("the script is over", flush=True)
