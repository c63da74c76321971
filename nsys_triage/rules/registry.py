"""All rules, found by looking into the folder `checks`: adding a rule is adding a file."""

import importlib
import pkgutil
from functools import cache

from nsys_triage.rules import checks
from nsys_triage.rules.base import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by identifier. Raises ValueError where a file holds no rule or two have one identifier."""
    found: dict[str, Rule] = {}
    for module_info in pkgutil.iter_modules(checks.__path__):
        module = importlib.import_module(f"{checks.__name__}.{module_info.name}")
        rule = getattr(module, "RULE", None)
        if not isinstance(rule, Rule) or rule.id.replace("-", "_") != module_info.name or rule.id in found:
            raise ValueError(f"{module.__name__} holds no RULE of its own name")
        found[rule.id] = rule
    return tuple(found[key] for key in sorted(found))


def rule_named(identifier: str) -> Rule | None:
    """The rule with that identifier, or None."""
    return next((rule for rule in all_rules() if rule.id == identifier), None)
