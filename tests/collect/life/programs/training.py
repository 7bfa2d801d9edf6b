"""The steps that every program here makes, some before what it is about and some after."""

import torch

net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 64, device="cuda")


def train(steps=16, each=lambda loss: loss.item()):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        each(loss)
        optimizer.step()
