"""A parameter and a method of one name."""

from sklearn.base import BaseEstimator, clone

from calibrant.decisions._score_parameter import HasScoreParameter, ScoreParameter


class Example(HasScoreParameter, BaseEstimator):
    def __init__(self, score="plain"):
        self.score = score

    @ScoreParameter
    def score(self, X):
        """Return the length."""
        return len(X)


def test_the_parameter_is_kept_and_the_method_works():
    model = Example(score="other")
    assert model.get_params() == {"score": "other"}
    assert model.score([1, 2]) == 2
    assert vars(model) == {"score": "other"}
    assert clone(model).set_params(score="third").get_params() == {"score": "third"}
    assert Example.score.__doc__ == "Return the length."
