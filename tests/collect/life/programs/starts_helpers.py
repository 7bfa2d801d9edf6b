import multiprocessing
import subprocess
import sys

import training


def help_out():
    import torch

    print("helped with", torch.__name__, flush=True)


if __name__ == "__main__":
    training.train()
    for code in ("print('no torch')", "import torch; print(torch.__name__)", "import sys; sys.exit('failed')"):
        print(subprocess.run([sys.executable, "-c", code], check=False).returncode, flush=True)
    process = multiprocessing.get_context("fork").Process(target=help_out)
    process.start()
    process.join()
    print(process.exitcode)
