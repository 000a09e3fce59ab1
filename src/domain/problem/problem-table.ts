import { serverProblems } from './server-problems.ts';

/*
 * The table of problems: code → HTTP status, title (RFC 9457) and remedy. Error responses use this table; so do
 * src/http/PROBLEMS.md and `latchkey explain`, together with problem-causes.ts.
 */
const table = {
  malformed_body: {
    status: 400,
    title: 'The body cannot be read',
    remedy: 'Send a form, or one JSON object, in UTF-8 and as long as Content-Length says.',
  },
  duplicate_parameter: {
    status: 400,
    title: 'A parameter is given twice',
    remedy: 'Send each parameter once.',
  },
  malformed_request: {
    status: 400,
    title: 'The request is malformed',
    remedy: 'Correct the request as the detail says. It was not carried out.',
  },
  idempotency_key_malformed: {
    status: 400,
    title: 'The idempotency key is malformed',
    remedy: 'Send one key of 1 to 255 printable ASCII characters, in quotes if it has a space.',
  },
  credentials_missing: {
    status: 401,
    title: 'Credentials are missing',
    remedy: 'Send the credential that the detail names.',
  },
  credentials_invalid: {
    status: 401,
    title: 'The credentials are not valid',
    remedy: 'Check the credential: it may have been rotated or revoked, or belong to another server.',
  },
  token_expired: {
    status: 401,
    title: 'The token has expired',
    remedy: 'Issue another token and use that.',
  },
  scope_missing: {
    status: 403,
    title: 'The credentials do not carry the scope needed',
    remedy: 'Use a credential with the scope that the detail names, or issue a token with it.',
  },
  session_read_only: {
    status: 403,
    title: 'The session of the console can only read',
    remedy: 'Sign out of the console, and sign in again with latchkey console --admin.',
  },
  operator_only: {
    status: 403,
    title: 'Only for the operator of this server',
    remedy:
      'Use an admin token that does not belong to a single account: one issued without an account, or the one in admin.token.',
  },
  origin_forbidden: {
    status: 403,
    title: 'Web pages may not call this interface',
    remedy:
      'Call from a server or a native program. To allow a page of yours, add its origin to listen.allowed_origins.',
  },
  host_forbidden: {
    status: 403,
    title: 'The host is not served here',
    remedy: 'Call it as localhost, or add the name to listen.allowed_hosts.',
  },
  license_not_found: {
    status: 404,
    title: 'No such license key',
    remedy: 'Check the key, and that the credential belongs to the product it was sold for.',
  },
  coupon_not_found: {
    status: 404,
    title: 'No such coupon',
    remedy: 'List the coupons to see their ids.',
  },
  coupon_code_not_found: {
    status: 404,
    title: 'No such coupon code',
    remedy: 'Check the code. Letter case does not matter.',
  },
  account_not_found: {
    status: 404,
    title: 'No such account',
    remedy: 'List the accounts to see their ids.',
  },
  product_not_found: {
    status: 404,
    title: 'No such product',
    remedy: 'List the products to see their keys.',
  },
  collection_not_found: {
    status: 404,
    title: 'No such collection',
    remedy: 'List the collections to see their ids.',
  },
  purchase_not_found: {
    status: 404,
    title: 'No such purchase',
    remedy: 'List the purchases: they can be searched by license key, email address and date.',
  },
  redemption_not_found: {
    status: 404,
    title: 'No such redemption',
    remedy: 'Check the order: it used no coupon, or its redemption was voided.',
  },
  operation_not_found: {
    status: 404,
    title: 'No such operation',
    remedy: 'List the outbox; a finished operation is removed after a while.',
  },
  act_not_found: {
    status: 404,
    title: 'No such audit event',
    remedy: 'List the audit to see the numbers of its events.',
  },
  token_not_found: {
    status: 404,
    title: 'No such token',
    remedy: 'List the tokens to see their ids.',
  },
  webhook_not_found: {
    status: 404,
    title: 'No such webhook endpoint',
    remedy: 'List the webhooks to see their ids.',
  },
  event_not_found: {
    status: 404,
    title: 'No such event',
    remedy: 'List the deliveries of a webhook to see the ids of its events.',
  },
  activation_not_found: {
    status: 404,
    title: 'No such activation',
    remedy: 'List the activations to see their ids.',
  },
  lease_not_found: {
    status: 404,
    title: 'No lease for this license key',
    remedy: 'Activate the license key on this device first: latchkey activate KEY.',
  },
  sign_in_not_found: {
    status: 404,
    title: 'There is no such sign-in',
    remedy: 'Look at the page of the console: it shows the code that is valid now.',
  },
  agent_not_found: {
    status: 404,
    title: 'No such agent',
    remedy: 'List the agents to see their numbers: latchkey agent list.',
  },
  route_not_found: {
    status: 404,
    title: 'No such route',
    remedy: 'Compare the path with /openapi.json.',
  },
  method_not_allowed: {
    status: 405,
    title: 'The method is not allowed here',
    remedy: 'Use a method that the Allow header names.',
  },
  request_timeout: {
    status: 408,
    title: 'The request took too long to arrive',
    remedy: 'Send it again. It was not carried out.',
  },
  coupon_redeemed: {
    status: 409,
    title: 'The coupon was redeemed',
    remedy: 'Change only its dates, limits and notes; or end it and create another coupon.',
  },
  coupon_code_taken: {
    status: 409,
    title: 'The coupon code is taken',
    remedy: 'Choose another code. A different letter case is not enough.',
  },
  coupon_not_redeemable: {
    status: 409,
    title: 'The coupon cannot be redeemed for this cart',
    remedy: 'Tell the customer what reasons lists. Nothing was recorded.',
  },
  license_key_taken: {
    status: 409,
    title: 'The license key is taken',
    remedy: 'Choose another key, or leave it out to have one generated.',
  },
  product_key_taken: {
    status: 409,
    title: 'The product key is taken',
    remedy: 'Choose another key, or leave it out to have one generated.',
  },
  product_archived: {
    status: 409,
    title: 'The product is archived',
    remedy: 'Unarchive it to sell it again. Its existing keys stay valid meanwhile.',
  },
  collection_id_taken: {
    status: 409,
    title: 'The collection id is taken',
    remedy: 'Choose another id, or leave it out to have one generated.',
  },
  token_of_the_file: {
    status: 409,
    title: 'The token is kept in a file',
    remedy: 'Remove the file admin.token and restart: a new token is created.',
  },
  operation_not_open: {
    status: 409,
    title: 'The state of the operation does not allow this',
    remedy: 'Look at the operation: its state determines what is possible.',
  },
  not_an_agent: {
    status: 409,
    title: 'This server is the authority: it has no upstream',
    remedy: 'Ask an agent: only an agent synchronizes.',
  },
  configuration_invalid: {
    status: 409,
    title: 'The configuration is not valid',
    remedy: 'Correct the configuration as the errors say, and reload again. Nothing was changed.',
  },
  embedded: {
    status: 409,
    title: 'Another program runs this server',
    remedy: 'Use the program that runs this server: only that program can end or reload it.',
  },
  not_the_authority: {
    status: 409,
    title: 'This server is an agent: the catalogue is upstream',
    remedy: 'Send the request to the upstream.',
  },
  idempotency_key_in_use: {
    status: 409,
    title: 'A request with this idempotency key is in flight',
    remedy: 'Wait for the first request to finish, then send it again to get its answer.',
  },
  backup_running: {
    status: 409,
    title: 'A backup is running',
    remedy: 'Wait until it has finished.',
  },
  console_off: {
    status: 409,
    title: 'The console is switched off here',
    remedy: 'Set console.enabled to true and listen.tcp to a loopback address, then restart the daemon.',
  },
  backed_up_by_the_database: {
    status: 409,
    title: 'PostgreSQL has its own backup tools',
    remedy: 'Use pg_dump, or what your PostgreSQL provider offers.',
  },
  no_seat_left: {
    status: 409,
    title: 'All seats of the license are taken',
    remedy:
      'Give the seat of another device back (latchkey deactivate), take it over, wait until one is free, or buy more seats.',
  },
  no_move_left: {
    status: 409,
    title: 'No more seats of the license can be freed now',
    remedy: 'Wait until the lease of the other device has expired: the answer says when.',
  },
  out_of_sequence: {
    status: 409,
    title: 'The request does not follow the last one',
    remedy:
      'A device reads the signed document `sequence`, and signs its request again with the number and the challenge of that document.',
  },
  activation_blocked: {
    status: 409,
    title: 'This device is blocked',
    remedy: 'Ask the vendor of the software. The license key can still be used on other devices.',
  },
  lease_request_unanswered: {
    status: 409,
    title: 'An earlier request with uses is unanswered',
    remedy:
      'Install its answer first. The detail names the command that writes it again. If the vendor has refused it, add --refused.',
  },
  not_a_holder: {
    status: 409,
    title: 'This process has no leases',
    remedy: 'Ask a holder: a Latchkey whose configuration has leases.issuer.',
  },
  not_an_issuer: {
    status: 409,
    title: 'This process issues no leases',
    remedy: 'Ask the issuer of the leases.',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    remedy: 'Send less, or raise limits.body_bytes.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'The content type is not supported',
    remedy:
      'Send application/x-www-form-urlencoded or application/json (for an import: application/json or text/csv), in UTF-8, without Content-Encoding, and with no transfer coding other than chunked.',
  },
  parameters_invalid: {
    status: 422,
    title: 'Parameters are not valid',
    remedy: 'Correct each parameter that errors lists.',
  },
  lease_request_invalid: {
    status: 422,
    title: 'The signed request is not valid',
    remedy: 'Sign the request as the detail says. Nothing was changed or counted.',
  },
  lease_invalid: {
    status: 422,
    title: 'The signed answer is not valid for this device',
    remedy: 'Use the file that the vendor made for a request of this device.',
  },
  import_rejected: {
    status: 422,
    title: 'The import was refused as a whole',
    remedy: 'Correct each row that errors lists, or import without atomic.',
  },
  product_is_recurring: {
    status: 422,
    title: 'The product has a recurring price',
    remedy: 'Create the coupon for another product.',
  },
  order_reused: {
    status: 422,
    title: 'The order has redeemed a coupon for another cart',
    remedy: 'Void the redemption first, or use another order.',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'The idempotency key was used for another request',
    remedy: 'Use a new key for each new request.',
  },
  license_revoked: {
    status: 409,
    title: 'The license was disabled since',
    remedy:
      'Look at the license. If another key has taken its place, use that key; else enable it again if it must be enabled.',
  },
  license_expired: {
    status: 409,
    title: 'The license has ended',
    remedy: 'Renew the license. A holder learns of that as soon as it reaches its issuer.',
  },
  license_replaced: {
    status: 409,
    title: 'The license has another key',
    remedy: 'Use the key that latchkey license show names.',
  },
  uses_limit_reached: {
    status: 409,
    title: 'The license has no use left',
    remedy: 'Sell more uses (latchkey license update --uses-limit), or take a use back.',
  },
  other_store: {
    status: 409,
    title: 'This is another store, or it was restored',
    remedy:
      'The agent sends again what a restored store has lost. It holds what another store may have carried out: latchkey outbox list.',
  },
  too_old_to_know: {
    status: 409,
    title: 'The change is too old to know whether it was carried out',
    remedy: 'Compare the license with your own records, then retry, drop or confirm the change at the agent.',
  },
  upstream_refused: {
    status: 422,
    title: 'The upstream refused',
    remedy: 'Correct the request as the detail says. The detail and the status are those of the upstream.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    remedy: 'Wait as long as Retry-After says.',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    remedy: 'Send fewer or shorter headers, or raise limits.header_bytes and limits.header_count.',
  },
} as const;

export type ProblemCode = keyof typeof table | keyof typeof serverProblems;

export const problems: Readonly<Record<ProblemCode, { status: number; title: string; remedy: string }>> = {
  ...table,
  ...serverProblems,
};

export function isProblemCode(code: string): code is ProblemCode {
  return Object.hasOwn(problems, code);
}
