import type { ProblemCode } from './problem-table.ts';

/**
 * Why each problem happens, for `latchkey explain` and src/http/PROBLEMS.md. Not in the table of problems, because no
 * response contains it.
 */
export const problemCauses: Readonly<Record<ProblemCode, string>> = {
  malformed_body:
    'The body is not a well-formed form, JSON object or CSV, is not UTF-8, or ended before Content-Length was reached.',
  duplicate_parameter:
    'The same name appears twice in the query or in the body, so it is not clear which value counts.',
  malformed_request:
    'The request violates HTTP or is ambiguous, for instance: an invalid path or Host, two credentials, a GET with a body, or more parameters than limits.parameters.',
  idempotency_key_malformed:
    'Idempotency-Key is empty, longer than 255 characters, not ASCII, or sent twice; or it has a space or a quotation mark, and is not a quoted string.',
  credentials_missing:
    'The route needs a credential, and the request carries none of the right kind: an API key does not open a license route, nor a product secret a coupon route.',
  credentials_invalid:
    'The server does not know the credential: it is mistyped, from another server, rotated, revoked, or, on an agent, of a product that is not in its configuration.',
  token_expired: 'The token was issued with an expiry (--expires), which has passed.',
  scope_missing:
    'The credential is valid but lacks a scope that this route needs; a token has the scopes it was issued with.',
  session_read_only:
    'A session of the console that was confirmed without --admin reads most of what the operator can read, and changes nothing.',
  operator_only:
    'The credential belongs to one account, but the route shows or changes what concerns all of them.',
  origin_forbidden:
    'The request carries Origin, Referer or Sec-Fetch-Site, so a web page sent it. Any page could use the credentials of a program on the same machine, so only pages from listen.allowed_origins are answered, and only under /api and /agent; and the console, with the token of its session.',
  host_forbidden:
    'Over TCP, Host names neither loopback nor one of listen.allowed_hosts. A page whose name was made to resolve to this machine (DNS rebinding) looks the same.',
  license_not_found:
    'No license with this key is known for the product of the credential. A key of another product gets the same answer.',
  coupon_not_found:
    'The account of the credential has no coupon with this id, or the id is not an integer. On an agent, the coupon may not have been fetched from the upstream yet.',
  coupon_code_not_found: 'The account of the credential has no coupon with this code.',
  account_not_found: 'No account has this id.',
  product_not_found:
    'No product that the credential gives access to has this key; on an agent, it is not under products in the configuration.',
  collection_not_found: 'No collection that the credential gives access to has this id.',
  purchase_not_found:
    'No purchase that the credential gives access to has this id or license key. A license that was imported without its purchase has none.',
  redemption_not_found:
    'There is no redemption for this order. An agent records only the orders that were sent to it.',
  operation_not_found:
    'The outbox has no change with this id. Finished changes are removed after 7 days; those that were delivered to a Latchkey after sync.keep.',
  act_not_found: 'The audit has no event with this number that the credential gives access to.',
  agent_not_found:
    'No agent that the credential gives access to has this number. It may have been forgotten.',
  token_not_found: 'No token that the credential gives access to has this id. A revoked token is gone.',
  sign_in_not_found:
    'The code or the secret is mistyped, the page has waited for more than five minutes, or the sign-in was refused or used. A restart of the daemon ends all sign-ins and sessions.',
  webhook_not_found: 'No webhook endpoint has this id. A removed endpoint is gone.',
  event_not_found:
    'No event has this id. Events are removed after 30 days, and exist only while there is an endpoint.',
  route_not_found: 'The path is mistyped, or belongs to another dialect or version of the API.',
  method_not_allowed: 'The path exists, but not for this method.',
  request_timeout:
    'The headers or the body took longer to arrive than limits.header_timeout or limits.request_timeout allows: a slow connection, or a client that announced more than it sent.',
  coupon_redeemed:
    'Customers know the code, the scope and the discount of a coupon that was redeemed, so these cannot be changed.',
  coupon_code_taken: 'The account already has a coupon with this code, in the same or another letter case.',
  coupon_not_redeemable:
    'A rule of the coupon refuses this cart: the coupon has not started or has ended, is used up, covers none of the products, or requires more in the cart.',
  license_key_taken:
    'A license key is unique in the whole authority, and another license already has this one.',
  product_key_taken:
    'A product key is unique in the whole authority, and another product already has this one.',
  product_archived: 'Somebody archived the product (product archive): its sales have ended.',
  collection_id_taken: 'Another collection has the id that was given.',
  token_of_the_file:
    'The request would revoke the token that the commands use (admin.token in the state directory).',
  operation_not_open:
    'Somebody, or the agent itself, has settled the change in the meantime, or it is being sent right now.',
  not_an_agent:
    'The process runs without upstream in its configuration, so it has no outbox, nothing to synchronize and no use for the events of a store.',
  configuration_invalid: 'A reload found an error in the configuration file or in a file that it names.',
  embedded: 'The server runs within a sandbox or within other software, which started it.',
  not_the_authority:
    'The process runs with upstream in its configuration, so products, purchases and accounts are not its own.',
  idempotency_key_in_use: 'The request was repeated before the first one was answered.',
  backup_running: 'Another backup is in progress, and only one is made at a time.',
  console_off:
    'The console is served on listen.tcp only, if all its addresses are loopback addresses and console.enabled is not false.',
  backed_up_by_the_database:
    'The authority keeps its records in PostgreSQL (store.postgres), which several nodes may share. A node cannot restore the database for the others.',
  body_too_large:
    'The body is larger than limits.body_bytes, or than the limit of its route: 64 KiB (an event of a store), 256 KiB (a cart or a coupon), 2 MiB (a preload) or 4 MiB (an import).',
  unsupported_media_type:
    'The route does not read this Content-Type, its charset is not UTF-8, or the body is compressed.',
  parameters_invalid:
    'A parameter is missing, malformed or, where the route rejects unknown parameters, unknown. errors lists every fault.',
  import_rejected: 'The import was requested with atomic, and at least one row cannot be imported.',
  product_is_recurring:
    'A coupon for a single product cannot be created for one that is sold by subscription.',
  order_reused:
    'The same order was sent before with different items or a different coupon; an order redeems one coupon once.',
  idempotency_key_reused: 'The key was sent before with a different method, path or content.',
  license_revoked:
    'The license got another key, or an agent has sent an enable whose caller saw the license before it was disabled: a revocation wins.',
  license_expired:
    'A holder has a lease whose license has ended since, and its issuer does not say whether it was renewed.',
  license_replaced: 'The license got another key (latchkey license rekey). The old key stays disabled.',
  uses_limit_reached: 'The license may be used only so often (uses_limit), and was. Nothing was counted.',
  other_store:
    'An agent has sent a change, and knows another store at this address, or this store from before it was restored.',
  too_old_to_know:
    'An agent has repeated a change whose answer is no longer stored, because it was last asked for over 30 days ago.',
  upstream_refused: 'The upstream answered, and refused the request that was passed on to it.',
  rate_limited:
    'The credential sent more requests than limits.rate allows; or too many lookups of unknown keys are waiting, or this lookup has waited for 30 s (limits.misses); or too many wrong credentials arrived (limits.failed_rate).',
  headers_too_large:
    'The headers, including the request line, exceed limits.header_bytes or limits.header_count.',
  internal_error: 'An unexpected error: a bug in Latchkey.',
  coupons_not_configured: 'The agent has no API key for its upstream, and coupons belong to an account.',
  upstream_unreachable:
    'The agent has never seen this key or coupon, so it has to ask the upstream, which cannot be reached, answers with errors, or refuses the agent’s credential.',
  verdict_expired:
    'The agent knows the key, but the upstream last confirmed it longer ago than freshness.grace (14 days by default), and cannot be reached now.',
  starting: 'The process has just started and is opening its store.',
  draining:
    'The process was told to stop (SIGTERM): it finishes the requests in progress and takes no new ones.',
  storage_failed:
    'The disk or file system of the state directory failed during a write. If it failed during the commit, it is unknown whether the change was made; the detail says so.',
  storage_unavailable:
    'The authority keeps its records in PostgreSQL (store.postgres), which cannot be reached, is starting or stopping, is read-only, or refuses the role it is given. The log and GET /readyz say which.',
  outcome_unknown:
    'The connection to PostgreSQL was lost after the change was sent and before the answer arrived. Only after this error and storage_failed may the change have been made.',
  storage_full:
    'The disk of the state directory is full, sync.max_pending changes are waiting, or the maximum number of preload keys is waiting to be fetched.',
  loop_detected:
    'The request carries the Latchkey-Instance of this very agent: it has called itself instead of its upstream.',
  activation_not_found:
    'No activation with this id is known to this issuer, or it belongs to a product of another account.',
  lease_not_found: 'This device has never asked for a lease of the license key, or has given its seat back.',
  no_seat_left: 'As many devices as the license has seats have asked for one, and none has given it back.',
  no_move_left:
    'A seat can be freed at once three times in 30 days. After that, it is freed when the last lease of its device expires, because its owner could have kept the lease.',
  out_of_sequence:
    'Another number of the last request is known of this device, or other totals of uses: the state of one of the two sides was restored or copied, or an old request was sent again.',
  too_many_agents:
    'A product, or an account by its API key, has at most 100,000 agents. Agents that have not asked for two hours make room. An agent whose state directory is lost at each start is another agent each time.',
  too_many_keys: 'An agent follows at most 100,000 license keys with one credential.',
  activation_blocked: 'The vendor has blocked the key of this device.',
  lease_request_unanswered:
    'Another request than the unanswered one was asked for as a file. The issuer may have counted the uses of the unanswered one, and would count them again.',
  not_a_holder: 'The route or command is for a holder, and this process is an authority or an agent.',
  not_an_issuer: 'The route or command is for an issuer of leases, and this process is a holder.',
  lease_request_invalid:
    'The request has the wrong type, algorithm, key, audience or members, its signature is wrong, or its totals are lower than in an earlier request.',
  lease_invalid:
    'The file is for another device, issuer or product, is older than the last document here, or its signature is wrong.',
  not_offered_by_holder: 'Coupons and the catalogue are with the store. A holder has no credential for it.',
  not_offered_by_store:
    'The store (`upstream.store`) has no request for this change of a license key, has no coupons here, or does not list its license keys.',
  leases_not_set_up:
    'The signing directory has no key statement, or no private key that the statement names.',
  clock_suspect:
    'The clock has jumped, was set back, or differs from that of the store by over 10 minutes in several responses. A lease that was signed with a wrong clock would be valid for too long.',
};
