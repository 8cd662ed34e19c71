"""Every smoothing as the textbooks write it: dictionaries, recursion, sums over all words. Slow, and independent."""

from collections import Counter
from functools import lru_cache

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"


class Oracle:
    """p(w | h) of Chen and Goodman (1999), of Katz (1987), and of counting."""

    def __init__(self, sentences, order, smoothing, interpolated=True, k=1.0):
        self.order, self.smoothing, self.k = order, smoothing, k
        self.interpolated = interpolated and smoothing != "katz"
        self.counts = Counter()
        for sentence in sentences:
            padded = [BEGIN, *sentence, END]
            for n in range(1, order + 1):
                for start in range(len(padded) - n + 1):
                    gram = tuple(padded[start : start + n])
                    if None not in gram:
                        self.counts[gram] += 1
        del self.counts[(BEGIN,)]
        self.words = sorted({gram[0] for gram in self.counts if len(gram) == 1} | {UNKNOWN, END})
        self.raw = self.counts
        if smoothing in ("kneser_ney", "modified_kneser_ney"):
            self.counts = self._continuation()
        self.after = {}
        for gram, count in self.counts.items():
            self.after.setdefault(gram[:-1], {})[gram[-1]] = count
        self.discounts = [None, *(self._discounts(n) for n in range(1, order + 1))]
        self.p = lru_cache(None)(self._p)

    def _continuation(self):
        """Of how many words an n-gram is seen after, unless it is of the highest order or begins with <s>."""
        adjusted = Counter()
        for gram, count in self.raw.items():
            if len(gram) == self.order or gram[0] == BEGIN:
                adjusted[gram] = count
            if len(gram) > 1:
                adjusted[gram[1:]] += gram[1:] != (BEGIN,)
        return adjusted

    def _discounts(self, n):
        """D(c) as a function."""
        values = Counter(count for gram, count in self.counts.items() if len(gram) == n)
        n1, n2, n3, n4 = (values[c] for c in (1, 2, 3, 4))
        if self.smoothing in ("absolute_discounting", "kneser_ney"):
            d = n1 / (n1 + 2 * n2) if n1 else 0.5
            return lambda c: d if c else 0.0
        if self.smoothing == "modified_kneser_ney":
            three = (0.5, 1.0, 1.5)
            if n1 and n2 and n3:
                y = n1 / (n1 + 2 * n2)
                found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
                if all(0 <= d <= c for c, d in enumerate(found, 1)):
                    three = found
            return lambda c: three[min(c, 3) - 1] if c else 0.0
        if self.smoothing == "katz":
            return self._good_turing(values)
        return lambda c: 0.0

    def _good_turing(self, values):
        for largest in (5, 4, 3, 2, 1):
            if not all(values[c] for c in range(1, largest + 2)):
                continue
            common = (largest + 1) * values[largest + 1] / values[1]
            if common >= 1:
                continue
            ratio = {
                c: ((c + 1) * values[c + 1] / (c * values[c]) - common) / (1 - common) for c in range(1, largest + 1)
            }
            if all(0 < r <= 1 for r in ratio.values()):
                return lambda c: c - ratio.get(c, 1.0) * c
        return lambda c: 0.5 if c else 0.0

    def _p(self, w, h):
        """P of a word after a history, a tuple that is cut to the last N - 1 words."""
        h = h[-(self.order - 1) :] if self.order > 1 else ()
        here = {v: c for v, c in self.after.get(h, {}).items() if c}
        total = sum(here.values())
        if self.smoothing == "add_k":
            return (here.get(w, 0) + self.k) / (total + self.k * len(self.words))
        if not total:
            return self.p(w, h[1:])
        if self.smoothing == "maximum_likelihood":
            return here.get(w, 0) / total
        below = (lambda v: self.p(v, h[1:])) if h else (lambda v: 1 / len(self.words))
        if self.smoothing == "witten_bell":
            discount, total = (lambda c: 0.0), total + len(here)
        else:
            discount = self.discounts[len(h) + 1]
        if self.smoothing == "katz" and not any(discount(c) for c in here.values()):
            total += 1
        seen = {v: (c - discount(c)) / total for v, c in here.items()}
        left = 1 - sum(seen.values())
        if self.interpolated:
            return seen.get(w, 0.0) + left * below(w)
        unseen = [v for v in self.words if v not in here]
        if not unseen:
            return seen[w] / sum(seen.values())
        return seen[w] if w in seen else left * below(w) / sum(below(v) for v in unseen)

    def contexts(self):
        """Every context that was seen, as long as the model looks back, or after <s>."""
        return sorted(h for h in self.after if len(h) == self.order - 1 or (h and h[0] == BEGIN))


def stupid_backoff(oracle, w, h):
    """Brants et al. (2007)."""
    h = h[-(oracle.order - 1) :] if oracle.order > 1 else ()
    if oracle.raw[(*h, w)]:
        return oracle.raw[(*h, w)] / sum(c for g, c in oracle.raw.items() if g[:-1] == h and len(g) == len(h) + 1)
    return 0.4 * stupid_backoff(oracle, w, h[1:]) if h else 0.0
