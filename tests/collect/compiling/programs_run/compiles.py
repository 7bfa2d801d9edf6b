import sys

import torch


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x, scale):
        y = self.layer(x) * scale  # recompiles in step 30
        if y.sum().item() > 1e9:  # breaks the graph
            y = y + 1
        return torch.sin(y).sum()


def main():
    torch.manual_seed(0)
    net = Net()
    step = torch.compile(net, backend="eager")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for number in range(60):
        loss = step(torch.randn(4, 8), 2 if number < 30 else 3)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("loss", loss.item(), torch.rand(1).item())
    print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"], file=sys.stderr)


main()
