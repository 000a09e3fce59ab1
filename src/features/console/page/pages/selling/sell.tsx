import type { ProductObject, PurchaseObject } from '../../../../../wire/catalogue.ts';
import { send } from '../../api.ts';
import { shownKey } from '../../format.ts';
import { Field, fieldText, filled, type ActionProps } from '../../parts/action.tsx';
import { changedOptions, changedParameters } from '../../parts/changes.ts';
import { Command, quoted } from '../../parts/command.tsx';
import { hrefTo } from '../../router.ts';
import { licenseTerms, TermFields } from '../licenses/terms.tsx';

/** Records a purchase, and shows the license key that the customer gets. */
export function sell(products: readonly ProductObject[]): ActionProps {
  const onSale = products.filter(({ archived }) => !archived);
  return {
    label: 'Sell a license',
    title: 'Sell a license',
    consequence:
      'Records a purchase and issues a license key. No money is moved, and no e-mail is sent: give the key to the customer yourself.',
    command: (form) => {
      const key = fieldText(form, 'license_key');
      return [
        'latchkey license issue',
        `--product ${quoted(fieldText(form, 'product_key') || 'PRODUCT')}`,
        `--email ${quoted(fieldText(form, 'buyer_email') || 'EMAIL')}`,
        ...(key === '' ? [] : [`--key ${quoted(key)}`]),
        ...changedOptions(form, licenseTerms),
      ].join(' ');
    },
    run: async (form) => {
      const { license } = await send<PurchaseObject>('POST', '/admin/v1/purchases', {
        ...filled(form),
        ...changedParameters(form, licenseTerms),
      });
      return (
        <>
          <p>The license key of {license.buyer_email}:</p>
          <Command line={license.license_key} />
          <p>
            <a href={hrefTo(['licenses', license.license_key])}>Show {shownKey(license.license_key)}</a>
          </p>
        </>
      );
    },
    children: (
      <>
        <Field
          label="Product"
          name="product_key"
          options={onSale.map(({ product_key: key, name }) => [key, name])}
          isRequired
        />
        <Field label="E-mail address of the customer" name="buyer_email" type="email" isRequired />
        <Field
          label="License key"
          name="license_key"
          help="Only to keep a key that the customer has; empty: a new key."
        />
        <TermFields empty="as the product says" />
      </>
    ),
  };
}
