"""The reports of Schemathesis that are not errors of the interface, each with its reason."""

import itertools
import json
import re

import schemathesis

INVALID_ACCEPTED = "ST201"
VALID_REJECTED = "ST202"
WRONG_METHOD_ANSWERED = "ST204"

# Problem codes for parameters that do not match the schema; all other codes are beyond the schema.
MISWRITTEN = re.compile(r"malformed|required|excluded|unknown|out_of_range|too_(long|short)|not_(a|an|one|text)(_\w+)?")
# Codes with the same names that do not concern the schema: the scopes of a product token, the total of a cart, the terms of
# leases that must fit together, a day that does not exist.
OF_RULES = {
    ("scopes", "excluded"),
    ("items", "out_of_range"),
    ("lease_refresh_s", "out_of_range"),
    ("lease_term_s", "out_of_range"),
    ("until", "not_a_datetime"),
    ("expires_at", "not_a_datetime"),
}


def limits_are_settings(failure, case, response):
    """The maximum size of a request is configured (limits.body_bytes, limits.header_bytes), not described."""
    return response.status_code in (413, 431)


def rules_go_beyond_a_schema(failure, case, response):
    """A schema describes the format of a parameter, not the contents of the catalogue or earlier requests."""
    told = problem(response)
    if told.get("code") == "parameters_invalid":
        faults = [fault for fault in told["errors"] if (fault["parameter"], fault["code"]) not in OF_RULES]
        return failure.code == VALID_REJECTED and not any(MISWRITTEN.fullmatch(fault["code"]) for fault in faults)
    # Each row of an import is read separately: see a_wrong_row_is_reported.
    codes = ("idempotency_key_reused", "import_rejected", "order_reused", "product_is_recurring", "upstream_refused")
    return failure.code == VALID_REJECTED and told.get("code") in codes


def a_wrong_row_is_reported(failure, case, response):
    """An import accepts the valid rows and reports the rejected ones (src/http/README.md, Import and export)."""
    return failure.code == INVALID_ACCEPTED and "imported" in problem(response).get("data", {})


def a_pattern_cannot_normalize(failure, case, response):
    """A new key or code must equal its NFKC form, which no pattern of JSON Schema can express."""
    faults = problem(response).get("errors", [])
    return failure.code == VALID_REJECTED and any("must not contain invisible" in fault["detail"] for fault in faults)


def a_schema_does_not_describe_csv(failure, case, response):
    """No schema describes the columns and rows of a CSV file; test/features/bulk/http/csv.test.ts tests them."""
    is_csv = case.media_type == "text/csv" or case.path.endswith("/import/preview")
    return failure.code == VALID_REJECTED and is_csv


def a_get_with_a_body_is_no_request(failure, case, response):
    """A GET with a body is refused with 400 before routing: RFC 9110 does not define its meaning."""
    detail = problem(response).get("detail", "")
    return failure.code == WRONG_METHOD_ANSWERED and detail.endswith("has no body here.")


def a_name_is_sent_once(failure, case, response):
    """In a form, a list as an unknown member becomes a repeated name, which the server refuses."""
    return failure.code == VALID_REJECTED and problem(response).get("code") == "duplicate_parameter"


def a_form_has_no_objects(failure, case, response):
    """An object in a form becomes its members, which the server refuses: a form has the JSON of `metadata` as text."""
    return failure.code == VALID_REJECTED and is_form(case) and isinstance(case.body.get("metadata"), dict)


def empty_is_not_sent(failure, case, response):
    """An empty value counts as missing; a schema with a pattern or a format would need a second type for that."""
    sent = [*(case.query or {}).values(), *(case.body.values() if is_form(case) else ())]
    return failure.code == INVALID_ACCEPTED and "" in sent


def a_paused_agent_asks_nothing(failure, case, response):
    """Schemathesis may pause the agent, which then cannot look up an unknown key until it is resumed."""
    told = problem(response)
    return told.get("code") == "upstream_unreachable" and "paused" in told["detail"]


def not_ready_is_an_answer(failure, case, response):
    """A readiness probe asks for 503 if the upstream is not fresh."""
    return case.path == "/readyz" and all(reason.startswith("upstream_") for reason in response.json()["reasons"])


def leases_are_not_set_up(failure, case, response):
    """The issuer of this test has no signing key; test/features/leases/contract.test.ts tests its answers."""
    return response.status_code == 503 and problem(response).get("code") == "leases_not_set_up"


def the_upstream_is_no_store(failure, case, response):
    """The upstream of this test is an authority, which does not list the keys that it has sold."""
    return response.status_code == 501 and problem(response).get("code") == "not_offered_by_store"


def every_event_is_accepted(failure, case, response):
    """An event of a store gets 200, whatever its form: the agent ignores what it cannot read."""
    return case.path.startswith("/hooks/v1/") and response.status_code == 200 and failure.code == INVALID_ACCEPTED


EXCEPTIONS = (
    every_event_is_accepted,
    the_upstream_is_no_store,
    leases_are_not_set_up,
    not_ready_is_an_answer,
    a_paused_agent_asks_nothing,
    a_name_is_sent_once,
    a_form_has_no_objects,
    a_wrong_row_is_reported,
    empty_is_not_sent,
    limits_are_settings,
    rules_go_beyond_a_schema,
    a_pattern_cannot_normalize,
    a_schema_does_not_describe_csv,
    a_get_with_a_body_is_no_request,
)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    return not any(is_right(failure, case, response) for is_right in EXCEPTIONS)


QUOTE = '"'
numbers = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Each request gets its own idempotency key, because a reused key is refused. No request waits for a change."""
    if case.path == "/sync/v1/changes" and isinstance(case.body, dict):
        wait = case.body.get("wait")
        # A boolean is an integer in Python, and must stay wrong.
        if type(wait) is int and 0 <= wait <= 25:
            case.body["wait"] = 0
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch(r'"[ !#-~]{1,200}"|[!#-~]{1,200}', key):
        case.headers["Idempotency-Key"] = f'"{key.strip(QUOTE)}.{next(numbers)}"'


def is_form(case):
    return case.media_type == "application/x-www-form-urlencoded" and isinstance(case.body, dict)


def problem(response):
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
