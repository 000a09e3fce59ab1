import { randomUUID } from 'node:crypto';
import type { SoldKey } from './stand-in.ts';

export type PolarStatus = 'granted' | 'revoked' | 'disabled';

export interface PolarActivation {
  readonly id: string;
  readonly label: string;
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
}

/** A license key as it is on file. */
export interface PolarLicense extends SoldKey {
  readonly id: string;
  readonly benefitId: string;
  readonly customer: Readonly<Record<string, unknown>> & { readonly id: string };
  readonly createdAt: number;
  activations: readonly PolarActivation[];
  status: PolarStatus;
  usage: number;
  limitUsage: number | null;
  limitActivations: number | null;
  validations: number;
  lastValidatedAt: number | null;
  expiresAt: number | null;
}

/** A license key as Polar’s schema shows it. */
export function licenseObject(license: PolarLicense, organizationId: string): object {
  const { customer } = license;
  return {
    created_at: instant(license.createdAt),
    modified_at: instant(license.lastValidatedAt),
    id: license.id,
    organization_id: organizationId,
    user_id: customer.id,
    customer_id: customer.id,
    user: {
      id: customer.id,
      email: customer['email'],
      public_name: String(customer['email']).slice(0, 1).toUpperCase(),
      avatar_url: null,
    },
    customer,
    benefit_id: license.benefitId,
    key: license.licenseKey,
    display_key: `****-${license.licenseKey.slice(-6)}`,
    status: license.status,
    limit_activations: license.limitActivations,
    usage: license.usage,
    limit_usage: license.limitUsage,
    validations: license.validations,
    last_validated_at: instant(license.lastValidatedAt),
    expires_at: instant(license.expiresAt),
  };
}

export function activationObject({ id: licenseKeyId }: PolarLicense, activation: PolarActivation): object {
  const { id, label, meta, createdAt } = activation;
  return {
    id,
    license_key_id: licenseKeyId,
    label,
    meta,
    created_at: instant(createdAt),
    modified_at: null,
  };
}

function instant(epochMs: number | null): string | null {
  return epochMs === null ? null : new Date(epochMs).toISOString();
}

/** A customer as Polar’s schema shows it. */
export function customerOf(
  email: string,
  organizationId: string,
  now: number,
): Readonly<Record<string, unknown>> & { readonly id: string } {
  return {
    id: randomUUID(),
    created_at: instant(now),
    modified_at: null,
    metadata: {},
    external_id: null,
    email,
    email_verified: false,
    type: 'individual',
    name: null,
    billing_name: null,
    billing_address: null,
    tax_id: null,
    locale: null,
    organization_id: organizationId,
    default_payment_method_id: null,
    deleted_at: null,
    first_user_event_at: null,
    avatar_url: null,
  };
}
