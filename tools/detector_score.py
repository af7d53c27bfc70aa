"""Non-maximum suppression and COCO's mAP, plainly: to know during training how good a detector is."""

import numpy as np


def pairwise_iou(a, b):
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    both = np.clip(high - low, 0, None).prod(-1)
    area = lambda x: (x[:, 2:] - x[:, :2]).prod(-1)
    return both / np.maximum(area(a)[:, None] + area(b)[None] - both, 1e-9)


def suppress(output, conf=0.001, iou=0.7, most=300):
    """One frame's [4 + nc, A] to rows of x1, y1, x2, y2, score, class: class by class, best first."""
    cells, classes = np.nonzero(output[4:].T > conf)
    score = output[4 + classes, cells]
    order = np.argsort(-score, kind="stable")[:1000]
    cells, classes, score = cells[order], classes[order], score[order]
    center, half = output[:2, cells].T, output[2:4, cells].T / 2
    box = np.concatenate((center - half, center + half), 1)
    apart = pairwise_iou(box + classes[:, None] * 1000.0, box + classes[:, None] * 1000.0) <= iou
    keep, alive = [], np.ones(len(box), bool)
    for i in range(len(box)):
        if alive[i]:
            keep.append(i)
            alive &= apart[i]
            if len(keep) == most:
                break
    return np.concatenate((box[keep], score[keep, None], classes[keep, None]), 1)


def mean_ap(found, truth, classes):
    """found: a frame's rows from `suppress`; truth: a frame's rows of x1, y1, x2, y2, class. Returns mAP50-95, mAP50."""
    limits = np.arange(0.5, 1.0, 0.05)
    table = np.full((classes, len(limits)), np.nan)
    for c in range(classes):
        hits, scores, total = [], [], 0
        for det, gt in zip(found, truth):
            det, gt = det[det[:, 5] == c][:100], gt[gt[:, 4] == c]
            total += len(gt)
            scores.append(det[:, 4])
            match = np.zeros((len(det), len(limits)), bool)
            if len(gt) and len(det):
                iou = pairwise_iou(det[:, :4], gt[:, :4])
                for t, limit in enumerate(limits):
                    free = np.ones(len(gt), bool)
                    for d in range(len(det)):
                        best = np.where(free, iou[d], -1)
                        g = int(best.argmax())
                        if best[g] >= limit:
                            free[g], match[d, t] = False, True
            hits.append(match)
        if total == 0:
            continue
        order = np.argsort(-np.concatenate(scores), kind="stable")
        hit = np.concatenate(hits)[order]
        for t in range(len(limits)):
            tp = hit[:, t].cumsum()
            recall, precision = tp / total, tp / np.arange(1, len(tp) + 1)
            precision = np.maximum.accumulate(precision[::-1])[::-1]
            at = np.searchsorted(recall, np.linspace(0, 1, 101))
            table[c, t] = np.where(at < len(precision), precision[np.minimum(at, len(precision) - 1)], 0).mean() \
                if len(precision) else 0.0
    return float(np.nanmean(table)), float(np.nanmean(table[:, 0]))
