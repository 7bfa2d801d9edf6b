import torch


def run(x, n):
    y = x * n
    print("in between")
    return torch.sin(y)


def whole(x):
    print("in between")
    return torch.sin(x)


compiled = torch.compile(run, backend="eager")
for n in (2, 3, 4):
    compiled(torch.ones(4), n)
torch.compile(whole, backend="eager", fullgraph=True)(torch.ones(4))
