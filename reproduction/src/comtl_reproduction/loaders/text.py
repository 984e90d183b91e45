"""From texts to TF-IDF scores of stemmed words and pairs of words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import snowballstemmer
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfTransformer

_STEMMER = snowballstemmer.stemmer("english")
_WORD = re.compile(r"[a-z]{2,}")


@dataclass(frozen=True)
class Corpus:
    """How often each word and each pair of neighbours occurs in each document.

    A term is a number: ``i`` is word ``i``, and ``(1 + i) V + j`` is word ``i`` followed by word
    ``j`` of ``V`` words. Only the terms that become features are ever spelled out.
    """

    words: list[str]
    terms: np.ndarray
    counts: sparse.csr_array

    def tfidf(
        self, n_features: int, train: np.ndarray, *others: np.ndarray
    ) -> tuple[list[str], list[sparse.csr_array]]:
        """Score the given sets of rows; terms and their weights are learned from the first.

        The features are the terms that occur most often in the rows of `train`. Returned are
        their names and one matrix for each set of rows, whose rows have length one.
        """
        totals = np.asarray(self.counts[train].sum(axis=0)).ravel()
        seen = np.flatnonzero(totals)
        chosen = np.sort(seen[np.lexsort((seen, -totals[seen]))[:n_features]])
        blocks = [self.counts[rows][:, chosen] for rows in (train, *others)]
        weights = TfidfTransformer().fit(blocks[0])
        scores = [sparse.csr_array(weights.transform(block), dtype=np.float64) for block in blocks]
        return self._spell(self.terms[chosen]), scores

    def _spell(self, terms: np.ndarray) -> list[str]:
        pairs = zip(*(part.tolist() for part in np.divmod(terms, len(self.words))), strict=True)
        return [
            f"{self.words[first - 1]} {self.words[second]}" if first else self.words[second]
            for first, second in pairs
        ]


def count_terms(texts: Iterable[str]) -> Corpus:
    """Count the terms of texts: lower case, words of two letters or more, no stop words, stems."""
    codes: dict[str, int] = {}
    documents = [
        [
            codes.setdefault(word, len(codes))
            for word in _WORD.findall(text.lower())
            if word not in ENGLISH_STOP_WORDS
        ]
        for text in texts
    ]
    words, stems = np.unique([_stem(word) for word in codes], return_inverse=True)
    lengths = [len(document) for document in documents]
    flat = np.fromiter((code for document in documents for code in document), np.int64)
    stem = stems[flat]
    row = np.repeat(np.arange(len(documents)), lengths)
    inside = row[1:] == row[:-1]
    pairs = ((1 + stem[:-1]) * len(words) + stem[1:])[inside]
    terms, columns = np.unique(np.concatenate([stem, pairs]), return_inverse=True)
    rows = np.concatenate([row, row[1:][inside]])
    entries = (np.ones(len(rows)), (rows, columns))
    counts = sparse.coo_array(entries, shape=(len(documents), len(terms))).tocsr()
    return Corpus(words.tolist(), terms, counts)


@cache
def _stem(word: str) -> str:
    """Stem an English word by Porter's second algorithm; the collections share most words."""
    return str(_STEMMER.stemWord(word))
