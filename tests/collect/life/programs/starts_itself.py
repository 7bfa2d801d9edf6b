import subprocess
import sys

import training

if len(sys.argv) > 1 and sys.argv[1] == "again":
    print("again", sys.argv[1:])
else:
    training.train()
    done = subprocess.run([sys.executable, __file__, "again"], capture_output=True, text=True, check=True)
    print(done.stdout, end="")
