import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import training

if __name__ == "__main__":
    threads, processes = ThreadPoolExecutor(2), ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    threads.submit(time.sleep, 0.1)
    print(processes.submit(abs, -1).result())
    training.train()
    print("the script is over", flush=True)
