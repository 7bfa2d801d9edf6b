"""torch_geometric: a graph attention network with random walks' data on the device."""

import oracle
import torch
from torch_geometric.nn import GATConv, global_mean_pool

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GATConv(32, 32, heads=4), GATConv(128, 8)

    def forward(self, x, edges, batch):
        return global_mean_pool(self.second(self.first(x, edges).relu(), edges), batch)


net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters())
x = torch.randn(1000, 32, device="cuda")
edges = torch.randint(1000, (2, 8000), device="cuda")
batch = torch.arange(1000, device="cuda") // 50
oracle.listen()
for _ in range(40):
    optimizer.zero_grad()
    net(x, edges, batch).square().mean().backward()
    optimizer.step()
