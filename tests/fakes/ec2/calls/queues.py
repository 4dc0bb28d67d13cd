"""SQS: look, receive and delete; and which rules of EventBridge send to a queue.

A wait for messages ends at once, because nobody else could put one there meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.operation import Answer, Operation
from tests.fakes.ec2.errors import ApiError, unknown_to_the_fake
from tests.fakes.ec2.notices import VISIBILITY, Message, Queue
from tests.fakes.ec2.requests import Params


def receive_message(account: Account, params: Params) -> Answer:
    """Up to ten messages, which nobody sees again until their visibility time-out has passed."""
    wanted = params.get("MaxNumberOfMessages", 1)
    if not 1 <= wanted <= 10:
        raise ApiError("InvalidParameterValue", "MaxNumberOfMessages must be 1 to 10")
    hidden = timedelta(seconds=params["VisibilityTimeout"]) if "VisibilityTimeout" in params else VISIBILITY
    ready = [m for m in _queue(account, params).messages if m.hidden_until <= account.now][:wanted]
    for message in ready:
        message.hidden_until = account.now + hidden
        message.receipts += 1
    return {"Messages": [_message(message) for message in ready]} if ready else {}


def delete_message_batch(account: Account, params: Params) -> Answer:
    """Only the newest receipt deletes a message; an old one does nothing, as with SQS."""
    entries = params["Entries"]
    if not 1 <= len(entries) <= 10:
        raise ApiError("TooManyEntriesInBatchRequest", "A batch request has 1 to 10 entries.")
    queue, done = _queue(account, params), {entry["ReceiptHandle"] for entry in entries}
    queue.messages = [message for message in queue.messages if _receipt(message) not in done]
    return {"Successful": [{"Id": entry["Id"]} for entry in entries], "Failed": []}


def get_queue_attributes(account: Account, params: Params) -> Answer:
    """What a queue is, as text."""
    if params.get("AttributeNames") != ["All"]:
        raise unknown_to_the_fake("GetQueueAttributes of single attributes")
    queue = _queue(account, params)
    about = {"QueueArn": queue.arn, "ApproximateNumberOfMessages": str(len(queue.messages))}
    return {"Attributes": about | ({"Policy": queue.policy} if queue.policy else {})}


def list_rule_names_by_target(account: Account, params: Params) -> Answer:
    """The rules that send to a queue."""
    queues = account.notices.queues.values()
    return {"RuleNames": sorted(name for queue in queues if queue.arn == params["TargetArn"] for name in queue.rules)}


def describe_rule(account: Account, params: Params) -> Answer:
    """A rule; one whose pattern is "" is disabled."""
    for queue in account.notices.queues.values():
        if params["Name"] in queue.rules:
            pattern = queue.rules[params["Name"]]
            state = {"State": "ENABLED", "EventPattern": pattern} if pattern else {"State": "DISABLED"}
            return {"Name": params["Name"], **state}
    raise ApiError("ResourceNotFoundException", f"Rule {params['Name']} does not exist on EventBus default.")


def _queue(account: Account, params: Params) -> Queue:
    if params["QueueUrl"] not in account.notices.queues:
        raise ApiError("QueueDoesNotExist", "The specified queue does not exist.")
    return account.notices.queues[params["QueueUrl"]]


def _receipt(message: Message) -> str:
    return f"{message.id}/{message.receipts}"


def _message(message: Message) -> dict[str, Any]:
    digest = hashlib.md5(message.body.encode(), usedforsecurity=False).hexdigest()
    sent = str(int(message.sent_at.timestamp() * 1000))
    return {
        "MessageId": message.id,
        "ReceiptHandle": _receipt(message),
        "MD5OfBody": digest,
        "Body": message.body,
        "Attributes": {"SentTimestamp": sent, "ApproximateReceiveCount": str(message.receipts)},
    }


OPERATIONS: Final[Mapping[str, Operation]] = {
    "ReceiveMessage": Operation(
        receive_message,
        "QueueUrl MaxNumberOfMessages VisibilityTimeout WaitTimeSeconds AttributeNames MessageSystemAttributeNames"
        " MessageAttributeNames",
    ),
    "GetQueueAttributes": Operation(get_queue_attributes, "QueueUrl AttributeNames"),
    "DeleteMessageBatch": Operation(delete_message_batch, "QueueUrl Entries"),
}
EVENTS: Final[Mapping[str, Operation]] = {
    "ListRuleNamesByTarget": Operation(list_rule_names_by_target, "TargetArn NextToken Limit"),
    "DescribeRule": Operation(describe_rule, "Name"),
}
