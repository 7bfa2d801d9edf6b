import os
import shutil
import tempfile

import training

folder = tempfile.mkdtemp()
os.chdir(folder)
training.train()
shutil.rmtree(folder)
print("gone")
