/**
 * A client for programs that ask a Latchkey agent about license keys and coupons, over TCP or a Unix socket. It has no
 * dependencies and runs on Node 20 and later.
 *
 * @example
 * import { connect } from 'latchkey/client';
 *
 * const latchkey = connect({ url: 'http://127.0.0.1:8787', productSecret: 'the-product-secret' });
 * const verdict = await latchkey.verify('WTKP4-66NL5-HMKQW-GFSCZ');
 * if (verdict.verdict === 'refused') process.exit(1);
 */
export {
  connect,
  LatchkeyClient,
  type ChangeOptions,
  type ConnectOptions,
  type LeaseOptions,
} from './client.ts';
export { type AddressOptions } from './address.ts';
export { type CredentialOptions } from './credential.ts';
export {
  verifyLease,
  type LeaseCheck,
  type LeaseDocuments,
  type LeaseTrust,
  type LeaseVerdict,
  type SignedRefusal,
  type UndeterminedLease,
  type UnsignedRefusal,
  type ValidLease,
} from './lease.ts';
export { type CallOptions } from './retry.ts';
export { type PublicKey } from './signed-document.ts';
export {
  type Cart,
  type CartItem,
  type ChangedLicense,
  type Disabled,
  type Freshness,
  type License,
  type NotFound,
  type Provenance,
  type Quote,
  type QuotedItem,
  type Redemption,
  type Undetermined,
  type Valid,
  type Verdict,
  type VerdictSource,
} from './types.ts';
export { LastKnown, type LastKnownOptions } from './last-known.ts';
export {
  AgentUnavailableError,
  ConfigurationError,
  isProblem,
  LatchkeyError,
  LeaseError,
  ProblemError,
  type LeaseErrorCode,
  type ParameterFault,
  type ProblemCode,
  type ProblemDetails,
} from './error.ts';
