import { useId } from 'preact/hooks';
import type { Noun } from './import-mapping.ts';

const meanings: Readonly<Record<Noun, string>> = {
  license: 'Licenses and their customers',
  purchase: 'Purchases and their licenses',
  coupon: 'Coupons of the account',
};

/** What is imported or exported. */
export function NounChoice({
  noun,
  onNoun,
  isDisabled = false,
}: {
  noun: Noun;
  onNoun: (noun: Noun) => void;
  isDisabled?: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>What</label>
      <select id={id} disabled={isDisabled} onChange={(event) => onNoun(event.currentTarget.value as Noun)}>
        {Object.entries(meanings).map(([each, meaning]) => (
          <option key={each} value={each} selected={each === noun}>
            {meaning}
          </option>
        ))}
      </select>
    </div>
  );
}
