import atexit
import multiprocessing
import time


def work():
    time.sleep(1)  # it uses CUDA only once the script is over
    import training

    training.train(steps=40)
    print("the process has trained", flush=True)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    context.Process(target=work).start()
    helper = context.Process(target=time.sleep, args=(1_000,))
    helper.start()
    atexit.register(helper.terminate)
    print("the script is over", flush=True)
