import concurrent.futures.thread  # noqa: F401  PyTorch needs it, and Python refuses to import it after the script's end
import threading
import time


def work():
    time.sleep(0.5)
    import training

    training.train(steps=40)
    print("the thread has trained", flush=True)


threading.Thread(target=work).start()
print("the script is over", flush=True)
