"""The built-in detectors' network: a small anchor-free convolutional detector with strides 8, 16 and 32.

Under 470 thousand weights, so that the fp32 ONNX file stays below two megabytes.
"""

import torch
import torch.nn.functional as F
from torch import nn

SIZE = 320
STRIDES = (8, 16, 32)
BINS = 16  # a distance is a distribution over 0..15 strides


class Conv(nn.Module):
    """Convolution, batch norm, SiLU. `fuse` folds the norm into the convolution for export."""

    def __init__(self, c_in, c_out, k=1, stride=1, groups=1):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, k, stride, k // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(c_out, eps=1e-3, momentum=0.03)

    def forward(self, x):
        x = self.conv(x)
        return F.silu(self.bn(x) if self.bn is not None else x)

    def fuse(self):
        bn, conv = self.bn, self.conv
        gain = bn.weight / torch.sqrt(bn.running_var + bn.eps)
        fused = nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding,
                          groups=conv.groups, bias=True)
        fused.weight.data = conv.weight.data * gain.view(-1, 1, 1, 1)
        fused.bias.data = bn.bias.data - bn.running_mean * gain
        self.conv, self.bn = fused, None


class Block(nn.Module):
    """Splits the channels, sends half of them through residual pairs of convolutions, and joins everything."""

    def __init__(self, c_in, c_out, n=1, shortcut=True):
        super().__init__()
        self.half = c_out // 2
        self.first = Conv(c_in, 2 * self.half)
        self.pairs = nn.ModuleList(
            nn.Sequential(Conv(self.half, self.half, 3), Conv(self.half, self.half, 3)) for _ in range(n))
        self.shortcut = shortcut
        self.last = Conv((2 + n) * self.half, c_out)

    def forward(self, x):
        x = self.first(x)
        parts = [x[:, :self.half], x[:, self.half:]]
        for pair in self.pairs:
            y = pair(parts[-1])
            parts.append(parts[-1] + y if self.shortcut else y)
        return self.last(torch.cat(parts, 1))


class Pyramid(nn.Module):
    """Three max-pools in a row: the whole frame in view of the coarsest level."""

    def __init__(self, c):
        super().__init__()
        self.first, self.last = Conv(c, c // 2), Conv(2 * c, c)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


def branch(c, mid, out):
    """Depthwise and pointwise convolutions, twice, then the raw prediction."""
    return nn.Sequential(Conv(c, c, 3, groups=c), Conv(c, mid), Conv(mid, mid, 3, groups=mid), Conv(mid, mid),
                         nn.Conv2d(mid, out, 1))


class Detector(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.stem = nn.Sequential(Conv(3, 16, 3, 2), Conv(16, 32, 3, 2), Block(32, 32))
        self.p3 = nn.Sequential(Conv(32, 56, 3, 2), Block(56, 56))
        self.p4 = nn.Sequential(Conv(56, 72, 3, 2), Block(72, 72))
        self.p5 = nn.Sequential(Conv(72, 72, 3, 2), Block(72, 72), Pyramid(72))
        self.up4 = Block(72 + 72, 64, shortcut=False)
        self.up3 = Block(64 + 56, 56, shortcut=False)
        self.down4 = Conv(56, 48, 3, 2)
        self.out4 = Block(48 + 64, 64, shortcut=False)
        self.down5 = Conv(64, 56, 3, 2)
        self.out5 = Block(56 + 72, 72, shortcut=False)
        widths = (56, 64, 72)
        self.boxes = nn.ModuleList(branch(c, 48, 4 * BINS) for c in widths)
        self.scores = nn.ModuleList(branch(c, 48, classes) for c in widths)
        for box, score, stride in zip(self.boxes, self.scores, STRIDES):
            box[-1].bias.data.fill_(1.0)
            # About five objects a frame, whatever the size of the grid.
            score[-1].bias.data.fill_(float(torch.log(torch.tensor(5 / classes / (SIZE / stride) ** 2))))
        centers, strides = anchors()
        self.register_buffer("centers", centers, persistent=False)
        self.register_buffer("strides", strides, persistent=False)
        self.register_buffer("bins", torch.arange(BINS, dtype=torch.float32).view(1, BINS, 1, 1), persistent=False)

    def raw(self, x):
        """Distances as distributions [B, 4*BINS, A] and class logits [B, nc, A]."""
        p3 = self.p3(self.stem(x))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        t4 = self.up4(torch.cat((F.interpolate(p5, scale_factor=2.0, mode="nearest"), p4), 1))
        t3 = self.up3(torch.cat((F.interpolate(t4, scale_factor=2.0, mode="nearest"), p3), 1))
        t4 = self.out4(torch.cat((self.down4(t3), t4), 1))
        t5 = self.out5(torch.cat((self.down5(t4), p5), 1))
        levels = (t3, t4, t5)
        # Constant lengths, so that the exported graph computes no shapes.
        cells = [(SIZE // s) ** 2 for s in STRIDES]
        boxes = [head(t).reshape(-1, 4 * BINS, n) for head, t, n in zip(self.boxes, levels, cells)]
        scores = [head(t).reshape(-1, self.classes, n) for head, t, n in zip(self.scores, levels, cells)]
        return torch.cat(boxes, 2), torch.cat(scores, 2)

    def distances(self, boxes):
        """Expected left, top, right and bottom distance in strides, [B, 4, A]."""
        n = sum((SIZE // s) ** 2 for s in STRIDES)
        spread = boxes.reshape(-1, 4, BINS, n).transpose(1, 2).softmax(1)
        return F.conv2d(spread, self.bins).reshape(-1, 4, n)

    def forward(self, x):
        """What is exported: [B, 4 + nc, A], centre and size in pixels of the input, scores from 0 to 1."""
        boxes, scores = self.raw(x)
        d = self.distances(boxes)
        low, high = self.centers - d[:, :2], self.centers + d[:, 2:]
        center, size = (low + high) * 0.5, high - low
        return torch.cat((torch.cat((center, size), 1) * self.strides, scores.sigmoid()), 1)

    def fuse(self):
        for module in self.modules():
            if isinstance(module, Conv):
                module.fuse()
        return self


def anchors():
    """Centres of the cells in units of their stride [1, 2, A], and the strides [1, 1, A]."""
    centers, strides = [], []
    for stride in STRIDES:
        n = SIZE // stride
        y, x = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
        centers.append(torch.stack((x, y)).reshape(2, -1) + 0.5)
        strides.append(torch.full((1, n * n), float(stride)))
    return torch.cat(centers, 1)[None], torch.cat(strides, 1)[None]
