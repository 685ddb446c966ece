"""Build pod templates for manifests that have none, from the fields in which such a manifest describes its
pods.

Which fields these are is catalog data (``catalog.workload``, ``DescribedPods``). The result is a template,
and the place of each part of it in the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from catalog.workload import FIELDS, DescribedPods, DeviceFields, TemplatePatch, join_path
from kube.templates import leaves, merge_strategic
from kube.tree import Path, Raw, kind_of, set_at
from policies.document import Document, InputError
from policies.workloads.parts import Parts, PodPart
from policies.workloads.parts import at as place_of
from policies.workloads.pod_schema import list_at, map_at
from policies.workloads.templates import expand, steps

Texts = Callable[[str], Any]
"""Parses YAML or JSON text into its one value; None if there is not exactly one."""
_ALSO = ("resources",)
"""Fields of a pod's spec that rules read besides the containers and those that a place may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The pods that one place of a manifest describes."""

    at: Path
    template: Raw
    parts: Parts
    place: int = 0
    """The index of the place among those of the kind."""
    unread: tuple[InputError, ...] = ()
    """Fields whose form can't be read, so that the real pods may differ."""

    @property
    def has_containers(self) -> bool:
        spec = self.template["spec"]
        return bool(spec.get("containers") or spec.get("initContainers"))


def described(document: Document, number: int, place: DescribedPods, texts: Texts | None = None) -> Iterator[Described]:
    """Yield the pods described at each spot of a place.

    Raises InputError if a path leads through what is no map or list.
    """
    for text in place.at:
        for at, value in expand(document, document.value, steps(join_path(place.root, text)), ()):
            map_at(document, value, at, null=False)
            yield _SpotReader(document, place, at, value, texts).read(number)


@dataclass(slots=True)
class _SpotReader:
    """Reads one spot."""

    document: Document
    place: DescribedPods
    at: Path
    value: Any
    """The value at ``at``."""
    texts: Texts | None
    metadata: Raw = field(default_factory=dict)
    spec: Raw = field(default_factory=dict)
    parts: list[PodPart] = field(default_factory=list)
    unread: list[InputError] = field(default_factory=list)

    def read(self, number: int) -> Described:
        whole = next((pair for path in self.place.spec for pair in self._found(path) if pair[1] != {}), None)
        for name, paths in (("labels", self.place.labels), ("annotations", self.place.annotations)):
            self._texts_by_key(name, paths)
        self._spec(whole)
        for name, paths in self.place.fields.items():
            self._field(name, paths)
        self._containers("containers", whole, self.place.containers)
        self._containers("initContainers", whole, self.place.init_containers)
        for named in self.place.resources:
            self._resources(named)
        for one in self.place.devices:
            self._devices(one)
        template = {"metadata": self.metadata, "spec": self.spec}
        for patch in self.place.patches:
            template = self._patched(template, patch)
        return Described(
            at=self.at,
            template={part: fields for part, fields in template.items() if fields or part == "spec"},
            parts=tuple(self.parts),
            place=number,
            unread=tuple(self.unread),
        )

    # --- ways in the manifest ---

    def _way(self, path: str) -> Path:
        """Return the place to which a path without stars leads."""
        if path.startswith("/"):
            return steps(join_path(self.place.root, path[1:]))
        return (*self.at, *steps(join_path("", path)))

    def _found(self, path: str) -> list[tuple[Path, Any]]:
        """Return every value at a path that is not null, with its place."""
        if path.startswith("/"):
            found = expand(self.document, self.document.value, steps(join_path(self.place.root, path[1:])), ())
        else:
            found = expand(self.document, self.value, steps(join_path("", path)), self.at)
        return [pair for pair in found if pair[1] is not None]

    def _first(self, paths: tuple[str, ...]) -> tuple[Path, Any] | None:
        """Return the first value at any of the paths; an empty map, list or text does not count."""
        return next((pair for path in paths for pair in self._found(path) if pair[1] not in ({}, [], "")), None)

    # --- parts of the pod ---

    def _put(self, pod: Path, at: Path, own: Path | None, value: Any) -> None:
        self.parts.append(PodPart(pod, at, own))
        if value is not None:
            top, *rest = pod
            tree = self.metadata if top == "metadata" else self.spec
            tree[str(rest[0])] = value if len(rest) == 1 else set_at(tree.get(str(rest[0])), tuple(rest[1:]), value)

    def _texts_by_key(self, name: str, paths: tuple[str, ...]) -> None:
        """Read labels or annotations: the first path wins, key by key, and is where edits go."""
        if not paths:
            return
        own = self._way(paths[0])
        self.parts.append(PodPart(("metadata", name), own, own))
        everything: dict[str, Any] = {}
        for path in paths:
            for at, value in self._found(path):
                for key, text in map_at(self.document, value, at).items():
                    if key not in everything:
                        everything[key] = text
                        if at != own:
                            self.parts.append(PodPart(("metadata", name, key), (*at, key), None))
        if everything:
            self.metadata[name] = everything

    def _spec(self, whole: tuple[Path, Any] | None) -> None:
        """Read the fields of a whole pod spec, except those that the kind has elsewhere."""
        if not self.place.spec:
            return
        at, value = whole or (self._way(self.place.spec[0]), {})
        spec = map_at(self.document, value, at, null=False)
        for name in (*FIELDS, *_ALSO):
            if name not in self.place.fields:
                self._put(("spec", name), (*at, name), (*at, name), spec.get(name))

    def _field(self, name: str, paths: tuple[str, ...]) -> None:
        own = self._way(paths[0])
        at, value = self._first(paths) or (own, None)
        self._put(("spec", name), at, own, value)

    def _containers(self, group: str, whole: tuple[Path, Any] | None, named: tuple[str, ...]) -> None:
        """Read the containers of the whole spec, then those that stand elsewhere."""
        found: list[tuple[Path, Any]] = []
        if whole is not None and group in whole[1]:
            found += _items(self.document, whole[1][group], (*whole[0], group))
        for text in named:
            default, _, path = text.rpartition("=")
            found += [(at, _named(self.document, at, value, default)) for at, value in self._found(path)]
        for number, (at, value) in enumerate(found):
            container = map_at(self.document, value, at, null=False)
            self._put(("spec", group, number), at, at, {**container})
            other = self.place.resources_as
            if other != "resources" and container.get(other) is not None:
                self._put(("spec", group, number, "resources"), (*at, other), (*at, other), container[other])

    def _resources(self, named: str) -> None:
        """Read the resources of a container of which the manifest has nothing else."""
        name, _, path = named.rpartition("=")
        for at, value in self._found(path):
            number = self._container(name)
            self._put(("spec", "containers", number, "resources"), at, at, value)

    def _devices(self, one: DeviceFields) -> None:
        found: list[tuple[str, Path, Any]] = []
        named: dict[str, Path] = {}
        for at, value in self._found(one.amounts) if one.amounts else ():
            found += [(name, (*at, name), amount) for name, amount in map_at(self.document, value, at).items()]
        for at, amount in self._found(one.amount) if one.amount else ():
            name = self._first((one.name,)) if one.name else None
            word = name[1] if name is not None else one.default
            if not isinstance(word, str):
                raise self.document.error(name[0] if name else at, f"must be the name of a resource; found {kind_of(word)}")
            if word:
                found.append((word, at, amount))
                if name is not None:
                    named[word] = name[0]
        listed: dict[str, list[Path]] = {}
        for at, word in self._found(one.each) if one.each else ():
            if not isinstance(word, str):
                raise self.document.error(at, f"must be the name of a resource; found {kind_of(word)}")
            listed.setdefault(word, []).append(at)
        found.extend((word, places[0], len(places)) for word, places in listed.items() if word)
        self._claims(one)
        for word, at, amount in found:
            number = self._container(one.container)
            self._expect_amounts(number, one.side)
            pod: Path = ("spec", "containers", number, "resources", one.side, word)
            self._put(pod, at, None, amount)
            if word in named:
                self.parts.append(PodPart(pod, named[word], None))

    def _claims(self, devices: DeviceFields) -> None:
        """Read which resource claims of the pod a container uses."""
        for at, value in self._found(devices.claims) if devices.claims else ():
            claim = map_at(self.document, value, at, null=False)
            if name := claim.get("claimName"):
                number = self._container(devices.container)
                uses = {"name": name, **({"request": claim["requestName"]} if claim.get("requestName") else {})}
                others = (self.spec["containers"][number].get("resources") or {}).get("claims") or []
                self._put(("spec", "containers", number, "resources", "claims"), at, None, [*others, uses])

    def _expect_amounts(self, number: int, side: str) -> None:
        """Raise InputError if the container's resources are something else than amounts."""
        where = place_of(("spec", "containers", number, "resources"), self.parts) or self.at
        resources = map_at(self.document, self.spec["containers"][number].get("resources"), where)
        map_at(self.document, resources.get(side), (*where, side))

    def _container(self, name: str) -> int:
        """Return the index of the container of that name, which is added if it is missing."""
        containers = self.spec.setdefault("containers", [])
        for number, container in enumerate(containers):
            if container.get("name") == name:
                return number
        containers.append({"name": name})
        return len(containers) - 1

    # --- patches ---

    def _patched(self, template: Raw, patch: TemplatePatch) -> Raw:
        for around, value in self._found(patch.at):
            names = [name for _, name in expand(self.document, value, steps(patch.of), around)] if patch.of else []
            if names and patch.only not in names:
                continue
            for at, words in expand(self.document, value, steps(join_path("", patch.path)), around):
                template = {**template, "spec": self._spec_patched(template["spec"], at, words)}
        return template

    def _spec_patched(self, spec: Raw, at: Path, words: Any) -> Raw:
        over = words if isinstance(words, dict) else self.texts(words) if self.texts and isinstance(words, str) else None
        try:
            if not isinstance(over, dict):
                raise ValueError(f"must be a patch of the pod's spec; found {kind_of(words)}")
            out = merge_strategic(spec, over)
        except ValueError as error:
            self.unread.append(self.document.error(at, str(error)))
            return spec
        self.parts += [PodPart(("spec", *way), at, None, within=isinstance(words, str)) for way in leaves(out, over)]
        return out


def _items(document: Document, value: Any, at: Path) -> list[tuple[Path, Any]]:
    return [((*at, number), item) for number, item in enumerate(list_at(document, value, at))]


def _named(document: Document, at: Path, value: Any, default: str) -> Raw:
    """Return a container with a name."""
    container = map_at(document, value, at, null=False)
    return {**container, "name": default} if default and not container.get("name") else {**container}
