"""gpytorch: training an exact Gaussian process."""

import gpytorch
import oracle
import torch


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood) -> None:
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


torch.manual_seed(0)
x = torch.rand(500, 2, device="cuda")
y = torch.sin(x.sum(1) * 6)
likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda()
model = Model(x, y, likelihood).cuda().train()
likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
loss_of = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
oracle.listen()
for _ in range(40):
    optimizer.zero_grad()
    loss = -loss_of(model(x), y)
    loss.backward()
    optimizer.step()
