import { maskedKey, type License } from '../../../domain/license.ts';
import { counted } from '../../../domain/text.ts';
import type { Audited, FeatureUseCases } from '../../../service/audit.ts';
import { forgetCustomer } from './forget.ts';
import { rekeyLicense, setLicenseUses, transferLicense } from './license.ts';

type CustomerUseCases = {
  forgetCustomer: typeof forgetCustomer;
  rekeyLicense: typeof rekeyLicense;
  setLicenseUses: typeof setLicenseUses;
  transferLicense: typeof transferLicense;
};

declare module '../../../service/writer.ts' {
  interface UseCases extends CustomerUseCases {}
}

export const useCases: CustomerUseCases = { forgetCustomer, rekeyLicense, setLicenseUses, transferLicense };

/** The audit is never changed, so it names no buyer: it names licenses. */
export const audited: FeatureUseCases['audited'] = {
  rekeyLicense: (license, { licenseKey }) => ({
    act: 'license.rekey',
    ...about({ ...license, licenseKey }, `now ${maskedKey(license.licenseKey)}`),
  }),
  transferLicense: (license, { freesSeats }) => ({
    act: 'license.transfer',
    ...about(license, freesSeats ? 'seats freed' : 'seats kept'),
  }),
  setLicenseUses: (license) => ({ act: 'license.set_uses', ...about(license, counted(license.uses, 'use')) }),
  forgetCustomer: ({ licenses, devices }) => ({
    act: 'customer.forget',
    subject: 'catalogue',
    detail: `${counted(licenses, 'license')}, ${counted(devices, 'device')}`,
  }),
};

function about({ licenseKey, productKey }: License, fact: string): Omit<Audited, 'act'> {
  return { subject: maskedKey(licenseKey), detail: `product ${productKey}, ${fact}` };
}
