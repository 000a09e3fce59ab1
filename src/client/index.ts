/**
 * A client for software that asks a Latchkey agent: license keys and coupons, over TCP or the socket. It has no
 * dependencies, and runs on Node 20 and later. It is made for
 * Electron's main process too, where it was never tried.
 */
export { connect, LatchkeyClient, type ChangeOptions, type ConnectOptions } from './client.ts';
export { type AddressOptions } from './address.ts';
export { type CredentialOptions } from './credential.ts';
export { type CallOptions } from './exchange.ts';
export { type ChangedLicense, type Freshness, type License, type Provenance } from './license.ts';
export {
  type Disabled,
  type NotFound,
  type Undetermined,
  type Valid,
  type Verdict,
  type VerdictSource,
} from './verdict.ts';
export { LastKnown, type LastKnownOptions } from './last-known.ts';
export {
  AgentAwayError,
  ConfigurationError,
  isProblem,
  LatchkeyError,
  ProblemError,
  type ParameterFault,
  type ProblemDetails,
} from './error.ts';
export { type ProblemCode } from './problem-code.ts';
export { type Cart, type CartItem, type Quote, type QuotedItem, type Redemption } from './checkout.ts';
