import { useId } from 'preact/hooks';
import type { Preview } from './import-mapping.ts';

/** What a person says about a file; '' is left to the daemon to recognize. */
export type Said = { readonly separator: string; readonly encoding: string; readonly from: string };

export const nothingSaid: Said = { separator: '', encoding: '', from: '' };

const separators = { comma: 'commas', semicolon: 'semicolons', tab: 'tabs', bar: 'bars' };
const encodings = { 'utf-8': 'UTF-8', 'windows-1252': 'Windows-1252' };
const stores = {
  gumroad: 'Gumroad: sales',
  lemonsqueezy: 'Lemon Squeezy: license keys',
  woocommerce: 'WooCommerce: License Manager',
};

/** How the file is written, as it was recognized, for a person to confirm or to change. */
export function ImportFormat({
  preview: { separator, encoding, reading, from },
  hasStores,
  onSay,
  isDisabled,
}: {
  preview: Preview;
  /** The exports of some stores are known. */
  hasStores: boolean;
  onSay: (said: Partial<Said>) => void;
  isDisabled: boolean;
}) {
  return (
    <>
      <h3>How the file is written</h3>
      <div class="pair">
        <Choice
          {...{ label: 'Between its cells', value: separator, texts: separators, isDisabled }}
          onChange={(value) => onSay({ separator: value })}
        />
        <Choice
          {...{ label: 'Encoding', value: encoding, texts: encodings, isDisabled }}
          help={reading === '' ? undefined : `It is right if you can read this: ${reading}`}
          onChange={(value) => onSay({ encoding: value })}
        />
        {hasStores && (
          <Choice
            {...{
              label: 'Exported by',
              value: from ?? 'other',
              texts: { other: 'another program', ...stores },
            }}
            isDisabled={isDisabled}
            onChange={(value) => onSay({ from: value })}
          />
        )}
      </div>
    </>
  );
}

function Choice({
  label,
  value,
  texts,
  help,
  onChange,
  isDisabled,
}: {
  label: string;
  value: string;
  texts: Readonly<Record<string, string>>;
  help?: string | undefined;
  onChange: (value: string) => void;
  isDisabled: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        disabled={isDisabled}
        aria-describedby={help === undefined ? undefined : `${id}-help`}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {Object.entries(texts).map(([each, text]) => (
          <option key={each} value={each} selected={each === value}>
            {text}
          </option>
        ))}
      </select>
      {help !== undefined && (
        <p class="quiet" id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  );
}
