"""`uphold flag`: put an order into an inbox, or see what lies there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from uphold.cli.arguments import label, usage_error
from uphold.cli.places import Place, locate, require_config
from uphold.cli.speaking import print_document, say
from uphold.cli.times import now
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, ConfigInvalid, UpholdError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable

    from uphold.core.specs import InboxSpec, SenderSpec, Settings
    from uphold.inbox.flags import Rules
    from uphold.inbox.shares import Inbox, Share


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("what", choices=("create", "list"), help="write an order, or list them")
    parser.add_argument(
        "handler",
        nargs="?",
        metavar="HANDLER",
        help="pause_watcher, resume_watcher, restart_watcher, update_code, update_code_deps, "
        "rollback_code, diagnostics, verify_db, or one of [inbox] handlers",
    )
    parser.add_argument("--worker-id", metavar="NAME", help="for whom; the only worker unless told")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="for handlers of plug-ins: a parameter, as JSON or as text",
    )
    parser.add_argument("--commits-back", type=int, metavar="N", help="for rollback_code: 1 to 10")
    parser.add_argument(
        "--label", type=label, metavar="TEXT", help="a short note, found everywhere"
    )
    parser.add_argument("--sender", metavar="NAME", help="sign it as this sender of [inbox]")


def run(args: argparse.Namespace) -> int:
    """Do what is asked for."""
    place = locate(args)
    settings, inbox = _configured(place)
    if args.what == "list":
        return _list(args, inbox)
    if args.handler is None:
        raise usage_error("`uphold flag create` needs a handler.", "See `uphold flag --help`.")
    return _create(args, place, settings, inbox)


def _configured(place: Place) -> tuple[Settings, InboxSpec]:
    from uphold.config.loading import load
    from uphold.errors import Problem

    path = require_config(place)
    settings = load(path, environ=os.environ)
    if settings.inbox is None:
        raise ConfigInvalid([Problem(path, "there is no [inbox] with a share.")])
    return settings, settings.inbox


def _create(args: argparse.Namespace, place: Place, settings: Settings, inbox: InboxSpec) -> int:
    from uphold.host.chance import any_number
    from uphold.inbox.creating import draft_flag, new_task_id, send

    wall = now()
    worker, sender = _worker(args, settings), _sender(args, inbox)
    draft = draft_flag(
        args.handler,
        worker,
        task_id=new_task_id(wall, any_number()),
        now=wall,
        label=args.label,
        params=_params(args),
        sender=sender,
        rules=_rules(args.handler, worker, inbox, sender),
    )
    job_id = _announce(args, place, draft.flag)
    path = _on_share(inbox, lambda share, _: send(share, draft))
    told = {
        "schema": 1,
        "job_id": job_id,
        "task_id": draft.flag.task_id,
        "handler": draft.flag.handler,
        "worker_id": draft.flag.worker_id,
        "label": draft.flag.label,
        "file": path,
    }
    if args.json:
        print_document(told)
    else:
        say(args, f"{told['task_id']}: {told['handler']} for {told['worker_id']}, written as")
        say(args, printable(str(told["file"])))
    return EXIT_DONE


def _params(args: argparse.Namespace) -> dict[str, Any]:
    import json

    params: dict[str, Any] = {}
    for given in args.param:
        key, equals, text = given.partition("=")
        if not equals:
            raise usage_error(f"'{printable(given)}' is no KEY=VALUE.", "See `uphold flag --help`.")
        try:
            params[key] = json.loads(text)
        except ValueError:
            params[key] = text
    if args.commits_back is not None:
        params["commits_back"] = args.commits_back
    return params


def _rules(handler: str, worker: str, inbox: InboxSpec, sender: SenderSpec | None) -> Rules | None:
    """Give the rules that hold with the plug-ins of this inbox; None where none is asked for."""
    from uphold.inbox.handlers import HANDLERS, find_handler

    if not inbox.handlers or find_handler(handler) is not None:
        return None
    from uphold.inbox.consulting import survey
    from uphold.inbox.flags import Rules

    # Each is a process of its own; all are asked only for another name of one, or to list them.
    rows, unusable = survey((handler,) if handler in inbox.handlers else inbox.handlers)
    return Rules(
        workers=frozenset({worker}),
        senders=() if sender is None else (sender,),
        handlers=(*HANDLERS, *rows),
        unusable=unusable,
    )


def _announce(args: argparse.Namespace, place: Place, flag: Any) -> str | None:
    """Put a queued job and an audit row on record where a supervisor runs here; else nobody can."""
    from uphold.cli.orders import author
    from uphold.cli.reaching import patience_of, reach
    from uphold.errors import NotRunning

    params = {
        "task_id": flag.task_id,
        "handler": flag.handler,
        "worker_id": flag.worker_id,
        "label": flag.label,
        "params": flag.params,
        "author": author(),
    }
    try:
        with reach(place, patience_of(args)) as connection:
            answer: dict[str, Any] = connection.call("announce", params, patience=patience_of(args))
    except NotRunning:
        return None
    return str(answer["job_id"])


def _worker(args: argparse.Namespace, settings: Settings) -> str:
    if args.worker_id:
        return str(args.worker_id)
    deploy = settings.deploy
    names = deploy.workers if deploy is not None and deploy.workers else ()
    names = names or tuple(spec.name for spec in settings.workers)
    if len(names) == 1:
        return names[0]
    raise usage_error(
        "it is not clear for which worker the flag is.", f"Say --worker-id: {', '.join(names)}"
    )


def _sender(args: argparse.Namespace, inbox: InboxSpec) -> SenderSpec | None:
    if args.sender is None:
        return None
    for sender in inbox.senders:
        if sender.name == args.sender:
            return sender
    raise UpholdError(
        f"no sender is called '{args.sender}'.",
        code="UPH_FLAG_SIGNATURE",
        remedy="The senders are those of [inbox.senders] in the configuration.",
        exit_code=5,
    )


def _on_share(inbox: InboxSpec, work: Callable[[Share, Inbox], Awaitable[Any]]) -> Any:
    """Do something on the share through its helper: one that hangs is given up in time."""
    import asyncio

    from uphold.host.clock import MachineClock
    from uphold.inbox.reaching import Reach
    from uphold.inbox.shares import Inbox, Share

    async def go() -> Any:
        reach = Reach(inbox, owner="cli", clock=MachineClock())
        try:
            return await work(Share(inbox, reach), Inbox(reach))
        finally:
            await reach.close()

    return asyncio.run(go())


def _list(args: argparse.Namespace, inbox: InboxSpec) -> int:
    from fnmatch import fnmatchcase

    from uphold.inbox.creating import list_flags

    lying = _on_share(inbox, lambda _, folder: list_flags(folder))
    pending = [each.name for each in lying.pending if fnmatchcase(each.name, inbox.pattern)]
    processing = [each.name for each in lying.processing]
    rejected = [{"file": each.name, "reason": reason} for each, reason in lying.rejected]
    if args.json:
        told = {"pending": pending, "processing": processing, "rejected": rejected}
        print_document({"schema": 1, **told})
        return EXIT_DONE
    for kind, names in (("pending", pending), ("processing", processing)):
        say(args, f"{kind}: {len(names) or 'none'}", *(f"  {printable(each)}" for each in names))
    say(args, f"rejected: {len(rejected) or 'none'}")
    for each in rejected:
        say(
            args,
            f"  {printable(str(each['file']))}: {printable(str(each['reason'] or '-').strip())}",
        )
    return EXIT_DONE
