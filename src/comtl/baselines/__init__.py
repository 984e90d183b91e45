"""What else people use: the paper's other methods, and the practitioner's first choices."""

from .factored import (
    FactoredClassifier,
    FactoredRegressor,
    GroupOverlapClassifier,
    GroupOverlapRegressor,
)
from .learned_relations import (
    FeatureLearningClassifier,
    FeatureLearningRegressor,
    RelationLearningClassifier,
    RelationLearningRegressor,
)
from .pooled import (
    IndependentClassifier,
    IndependentRegressor,
    MeanRegularizedClassifier,
    MeanRegularizedRegressor,
    PooledClassifier,
    PooledRegressor,
    RandomInterceptClassifier,
    RandomInterceptRegressor,
)
from .pools import (
    ClusteredClassifier,
    ClusteredRegressor,
    SharedPoolClassifier,
    SharedPoolRegressor,
)

__all__ = [
    "ClusteredClassifier",
    "ClusteredRegressor",
    "FactoredClassifier",
    "FactoredRegressor",
    "FeatureLearningClassifier",
    "FeatureLearningRegressor",
    "GroupOverlapClassifier",
    "GroupOverlapRegressor",
    "IndependentClassifier",
    "IndependentRegressor",
    "MeanRegularizedClassifier",
    "MeanRegularizedRegressor",
    "PooledClassifier",
    "PooledRegressor",
    "RandomInterceptClassifier",
    "RandomInterceptRegressor",
    "RelationLearningClassifier",
    "RelationLearningRegressor",
    "SharedPoolClassifier",
    "SharedPoolRegressor",
]
