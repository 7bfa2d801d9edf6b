import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import training


def work(steps):
    time.sleep(0.5)
    training.train(steps)
    print("the executor has trained", flush=True)


if __name__ == "__main__":
    threads, processes = ThreadPoolExecutor(2), ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    threads.submit(work, 40).add_done_callback(lambda _: print("done", flush=True))
    print(processes.submit(abs, -1).result())
    processes.submit(training.train, 16)
    print("the script is over", flush=True)
