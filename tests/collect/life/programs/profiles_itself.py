import torch
import training

training.train(11)
with torch.profiler.profile() as profile:
    training.train(2)
print(len(profile.events()) > 0)
training.train()
