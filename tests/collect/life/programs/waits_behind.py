"""Waits behind the loop of a training that no loader ends, and of which few steps are counted: they wait so often."""

import time

import torch

net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")


def train(most):
    made = 0
    while True:
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        for _ in range(60):
            loss.measure()
        time.sleep(0.001)
        optimizer.step()
        made += 1
        if made >= most:
            return loss


last = train(1500)
last.measure()
last.measure()
few = train(100)  # as finetuning after a training
few.measure()
