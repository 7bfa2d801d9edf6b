import multiprocessing
import pickle
import sys

import training


class Point:
    def __init__(self, x):
        self.x = x


def work(point):
    print("child", __name__, type(point).__module__, sys.argv, flush=True)
    return point


if __name__ == "__main__":
    training.train()
    print(type(pickle.loads(pickle.dumps(Point(1)))) is Point, Point.__module__)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(work, (Point(2),)).x, flush=True)
    process = multiprocessing.get_context("fork").Process(target=work, args=(Point(3),))
    process.start()
    process.join()
    print(process.exitcode)
