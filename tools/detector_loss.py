"""What the detectors learn from: which cells answer for which object, and how wrong they are."""

import math

import torch
import torch.nn.functional as F

from detector_net import BINS

TOP = 10  # cells that answer for an object
ALPHA, BETA = 0.5, 6.0  # weight of score and of overlap when cells are chosen
W_BOX, W_CLASS, W_BINS = 7.5, 0.5, 1.5


def overlap(a, b, complete=False):
    """IoU of corner boxes (..., 4), or CIoU: less a penalty for distance of centres and difference of aspect."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    both = (high - low).clamp(min=0).prod(-1)
    size_a, size_b = a[..., 2:] - a[..., :2], b[..., 2:] - b[..., :2]
    iou = both / (size_a.prod(-1) + size_b.prod(-1) - both + 1e-7)
    if not complete:
        return iou
    around = torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])
    between = (a[..., :2] + a[..., 2:] - b[..., :2] - b[..., 2:]).square().sum(-1) / 4
    angle = torch.atan(size_b[..., 0] / (size_b[..., 1] + 1e-7)) - torch.atan(size_a[..., 0] / (size_a[..., 1] + 1e-7))
    v = 4 / math.pi**2 * angle.square()
    with torch.no_grad():
        weight = v / (v - iou + 1 + 1e-7)
    return iou - between / (around.square().sum(-1) + 1e-7) - v * weight


@torch.no_grad()
def assign(scores, boxes, centers, truth, labels, real):
    """Task-aligned choice. scores [B,A,C] (0..1), boxes [B,A,4], centers [A,2] in pixels, truth [B,G,4], labels [B,G],
    real [B,G]: which rows of truth are objects. Returns the object of each cell [B,A], whether it has one [B,A],
    and how well it fits, from 0 to 1 [B,A]."""
    batch, objects = labels.shape
    x, y = centers[:, 0], centers[:, 1]
    inside = torch.stack((x - truth[..., 0:1], y - truth[..., 1:2], truth[..., 2:3] - x, truth[..., 3:4] - y)).amin(0)
    inside = (inside > 0.01) & real[..., None]  # [B,G,A]
    iou = overlap(truth[:, :, None], boxes[:, None]).clamp(min=0) * inside
    index = labels[..., None].expand(-1, -1, scores.shape[1])
    score = scores.transpose(1, 2).gather(1, index)
    fit = score.pow(ALPHA) * iou.pow(BETA) * inside
    best = fit.topk(TOP, dim=2)
    chosen = torch.zeros_like(fit, dtype=torch.bool).scatter_(2, best.indices, best.values > 1e-9)
    # Small objects may enclose no centre at all: the nearest cell of all answers for them.
    away = ((truth[..., :2] + truth[..., 2:])[:, :, None] / 2 - centers).square().sum(-1)
    lonely = real & ~chosen.any(2)
    nearest = F.one_hot(away.argmin(2), fit.shape[2]).bool()
    chosen |= nearest & lonely[..., None]
    fit = torch.where(lonely[..., None] & nearest, fit.clamp(min=1e-4), fit)
    # A cell that several objects want goes to the one it overlaps most.
    wish = torch.where(chosen, iou + 1e-6, torch.zeros_like(iou))
    owner = wish.argmax(1)
    taken = chosen.any(1)
    chosen &= F.one_hot(owner, objects).transpose(1, 2).bool()
    fit = fit * chosen
    peak_fit = fit.amax(2, keepdim=True)
    peak_iou = (iou * chosen).amax(2, keepdim=True)
    quality = (fit / (peak_fit + 1e-9) * peak_iou).amax(1)
    return owner, taken, quality


def loss(net, boxes_raw, scores_raw, truth, labels, real):
    """Sum of the three parts, per object. truth in pixels of the input."""
    boxes_raw, scores_raw = boxes_raw.float(), scores_raw.float()
    strides = net.strides[0, 0]
    centers = net.centers[0].T  # [A,2] in strides
    d = net.distances(boxes_raw).transpose(1, 2)
    boxes = torch.cat((centers - d[..., :2], centers + d[..., 2:]), -1)  # in strides
    logits = scores_raw.transpose(1, 2)
    owner, taken, quality = assign(logits.detach().sigmoid(), boxes.detach() * strides[:, None],
                                   centers * strides[:, None], truth, labels, real)
    want_box = truth.gather(1, owner[..., None].expand(-1, -1, 4)) / strides[:, None]
    want_class = F.one_hot(labels.gather(1, owner), net.classes) * (quality * taken)[..., None]
    total = want_class.sum().clamp(min=1)

    class_loss = F.binary_cross_entropy_with_logits(logits, want_class, reduction="none").sum() / total
    weight = quality * taken
    box_loss = ((1 - overlap(boxes, want_box, complete=True)) * weight).sum() / total
    # The two bins beside the true distance share the blame.
    want = torch.cat((centers - want_box[..., :2], want_box[..., 2:] - centers), -1).clamp(0, BINS - 1.01)
    low = want.floor()
    share = want - low
    log_p = boxes_raw.reshape(boxes_raw.shape[0], 4, BINS, -1).permute(0, 3, 1, 2).log_softmax(-1)
    low = low.long()[..., None]
    nll = log_p.gather(-1, low)[..., 0] * (share - 1) - log_p.gather(-1, low + 1)[..., 0] * share
    bins_loss = (nll.mean(-1) * weight).sum() / total
    return W_BOX * box_loss + W_CLASS * class_loss + W_BINS * bins_loss
