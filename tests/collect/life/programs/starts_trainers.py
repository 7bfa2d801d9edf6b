import subprocess
import sys

import training

training.train()
print("trained", sys.argv[1:], flush=True)
if sys.argv[1:] != ["grandchild"]:
    name = "grandchild" if sys.argv[1:] == ["child"] else "child"
    sys.exit(subprocess.run([sys.executable, __file__, name], check=False).returncode + 1)
