"""Prints the most memory of the device that was in use after a step, by NVML, in bytes."""

import torch
import training

kept = torch.empty(torch.cuda.get_device_properties(0).total_memory // 2, dtype=torch.uint8, device="cuda")
used = []


def look(loss):
    loss.item()
    used.append(torch.cuda.device_memory_used())


training.train(60, look)
print(max(used))
