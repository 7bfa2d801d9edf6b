import threading

import training

losses = []


def work():
    training.train(steps=40, each=lambda loss: losses.append(loss.item()))
    raise ValueError("the thread's own")


thread = threading.Thread(target=work, name="trainer")
thread.start()
thread.join()
print(len(losses), [one.name for one in threading.enumerate()])
