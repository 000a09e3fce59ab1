import type { ProblemCode } from './problem-table.ts';

/**
 * Why each problem happens, for people: `latchkey explain` and src/http/PROBLEMS.md say it.
 * Apart from the table of problems, since no answer carries it.
 */
export const problemCauses: Readonly<Record<ProblemCode, string>> = {
  malformed_body:
    'The body is no well-formed form, JSON object or CSV, is not UTF-8, or ended before Content-Length was reached.',
  duplicate_parameter:
    'The same name stands twice in the query or in the body, and nothing tells which counts.',
  malformed_request:
    'The request breaks HTTP, or can be read in two ways: a path or Host that cannot be read, two credentials, a GET with a body, or more parameters than limits.parameters.',
  idempotency_key_malformed: 'Idempotency-Key is empty, longer than 255 characters, or sent twice.',
  credentials_missing:
    'The route needs a credential, and the request carries none that is meant for it: an API key does not open a route of license keys, nor a product secret one of coupons.',
  credentials_invalid:
    'A credential was sent that nobody here has: mistyped, of another server, rolled, revoked, or, on an agent, of a product that is not in its configuration.',
  token_expired: 'The token was issued with an end (--expires), which has passed.',
  scope_missing:
    'The credential is good, but was given less than this route needs; tokens carry the scopes they were issued with.',
  operator_only:
    'The credential belongs to one account, and the route tells or changes what concerns all of them.',
  origin_forbidden:
    'The request carries Origin or Referer, so a web page sent it. Any page could use the credentials of a program on the same machine, so none is answered but those of listen.allowed_origins, and those under /api and /agent only.',
  host_forbidden:
    'Over TCP the Host names neither loopback nor one of listen.allowed_hosts. A page whose name was made to lead to this machine (DNS rebinding) looks the same.',
  license_not_found:
    'No license with this key is known to the product of the credential. A key of another product gets the same answer.',
  coupon_not_found:
    'The account of the credential has no coupon with this id, or the id is no integer. On an agent the coupon may not have been fetched from the upstream yet.',
  coupon_code_not_found: 'The account of the credential has no coupon with this code.',
  account_not_found: 'No account has this id.',
  product_not_found:
    'No product that the credential reaches has this key; on an agent it is not under products in the configuration.',
  collection_not_found: 'No collection that the credential reaches has this id.',
  purchase_not_found:
    'No purchase that the credential reaches has this id or license key. A license that was imported without its purchase has none.',
  redemption_not_found:
    'The order is not on record here; an agent records the orders that were sent to it alone.',
  operation_not_found: 'The outbox has no change with this id. Finished ones are removed after 7 days.',
  act_not_found: 'The record of acts has no entry with this number that the credential reaches.',
  token_not_found: 'No token that the credential reaches has this id. A revoked one is gone.',
  route_not_found: 'The path is mistyped, or belongs to another dialect or version of the interface.',
  method_not_allowed: 'The path exists, for other methods.',
  request_timeout:
    'The headers or the body took longer than limits.header_timeout or limits.request_timeout: a slow line, or a client that announced more than it sent.',
  coupon_redeemed:
    'Customers know the code, the scope and the discount of a coupon that was redeemed, so these stay.',
  coupon_code_taken: 'The account has a coupon with this code already, in this or another letter case.',
  coupon_not_redeemable:
    'A rule of the coupon refuses this cart: it has not begun or has ended, is used up, covers none of the products, or asks for more in the cart.',
  license_key_taken: 'A license key is unique in the whole authority, and another license has this one.',
  product_key_taken: 'A product key is unique in the whole authority, and another product has this one.',
  product_archived: 'Somebody archived the product (product archive): its sales have ended.',
  collection_id_taken: 'Another collection has the id that was given.',
  token_of_the_file: 'The token that commands use (admin.token in the state directory) was to be revoked.',
  operation_not_open:
    'Somebody, or the agent itself, has decided on the change in the meantime, or it is on its way right now.',
  not_an_agent: 'The process runs without upstream in its configuration, so it has no outbox and no sync.',
  not_the_authority:
    'The process runs with upstream in its configuration: products, purchases and accounts are not its own.',
  idempotency_key_in_use: 'The request was repeated before its first sending was answered.',
  backup_running: 'Another backup is being read; one is made at a time.',
  backed_up_by_the_database:
    'The authority keeps its records on PostgreSQL (store.postgres): a copy made by one of several processes would be none that the others could go on from.',
  body_too_large: 'The body is larger than limits.body_bytes, or an import larger than 4 MiB.',
  unsupported_media_type:
    'The Content-Type is another than the route reads, names another charset than UTF-8, or the body is compressed.',
  parameters_invalid:
    'A parameter is missing, unknown where unknown ones are refused, or not of the form that is expected. errors names all of them at once.',
  import_rejected: 'The import was asked for with atomic, and at least one row cannot be taken.',
  product_is_recurring: 'A coupon for a single product cannot be made for one that is sold by subscription.',
  order_reused:
    'The same order was sent before with other items or another coupon; an order redeems one coupon once.',
  idempotency_key_reused: 'The key was sent before with another method, path or content.',
  upstream_refused: 'The upstream answered, and refused what was passed on to it.',
  rate_limited:
    'The credential sent more than limits.rate, asked for more unknown keys than limits.misses, or too many wrong credentials arrived (limits.failed_rate).',
  headers_too_large:
    'The headers, with the request line, are more than limits.header_bytes or limits.header_count.',
  internal_error: 'An error that nobody foresaw: a fault of Latchkey.',
  coupons_not_configured: 'The agent has no API key of its upstream, and coupons belong to an account.',
  upstream_unreachable:
    'The agent has never seen this key or coupon, so it has to ask, and the upstream is away, answers with errors, or refuses the credential of the agent.',
  verdict_expired:
    'The agent knows the key, but the upstream last confirmed it longer ago than freshness.grace (14 days unless set), and cannot be reached now.',
  starting: 'The process has just been started and is opening its store.',
  draining: 'The process was told to stop (SIGTERM): it finishes what is in flight and takes nothing new.',
  storage_failed: 'The disk, or the file system of the state directory, failed while it was written to.',
  storage_unavailable:
    'The authority keeps its records on PostgreSQL (store.postgres), which cannot be reached, is starting or stopping, only reads, or refuses its role. The log and GET /readyz say which.',
  outcome_unknown:
    'The connection to PostgreSQL was lost after the change was handed over and before its answer came. It is the one refusal that may have changed something.',
  storage_full:
    'No room is left on the disk of the state directory, or as many changes wait as sync.max_pending allows, or as many keys to be fetched ahead as preload takes.',
  loop_detected:
    'The request carries the Latchkey-Instance of this very agent: it has reached itself instead of its upstream.',
};
