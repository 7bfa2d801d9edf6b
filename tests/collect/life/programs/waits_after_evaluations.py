"""Waits once behind each evaluation, in an op that its expression does not tell: nothing else says that the loop of the
evaluation is over."""

import sys
import time

import torch

net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
average = torch.nn.Linear(64, 64).cuda()
average.training = False
x = torch.randn(8, 64, device="cuda")


def train(steps, seconds):
    for batch in torch.utils.data.dataloader.DataLoader([x] * steps):
        optimizer.zero_grad()
        loss = net(batch).sum()
        loss.backward()
        time.sleep(seconds)
        optimizer.step()


def evaluate(steps, seconds):
    for _ in range(steps):
        average(x)
        time.sleep(seconds)


epochs, steps, seconds = sys.argv[1:] or ("3", "10", "0")
for _ in range(int(epochs)):
    train(int(steps), float(seconds))
    evaluate(int(steps), float(seconds))
    x.measure()
    time.sleep(float(seconds))
