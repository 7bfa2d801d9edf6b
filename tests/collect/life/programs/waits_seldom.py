"""Waits at a line that no window records, in an op that its expression does not tell, in every twentieth step."""

import sys
import time

import torch

net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")


def train(steps, seconds):
    for step in range(steps):
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        if step > 100 and step % 20 == 15:
            loss.measure()
        time.sleep(seconds)
        optimizer.step()


steps, seconds = sys.argv[1:] or ("40", "0")
train(int(steps), float(seconds))
