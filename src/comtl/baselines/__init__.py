"""What else people use: the paper's other methods, and the practitioner's first choices."""

from .clustered import ClusteredClassifier, ClusteredRegressor
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
    PooledClassifier,
    PooledRegressor,
    RandomInterceptClassifier,
    RandomInterceptRegressor,
)
from .separate import (
    IndependentClassifier,
    IndependentRegressor,
    MeanRegularizedClassifier,
    MeanRegularizedRegressor,
)
from .shared_pool import SharedPoolClassifier, SharedPoolRegressor

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
