document.querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const licenseKey = new FormData(event.target).get('key');
  const { verdict, reason, source, entitlements } = await window.license.verify(licenseKey);
  const shown = document.querySelector('p');
  shown.textContent = reason === null ? verdict : `${verdict}: ${reason}`;
  if (verdict !== 'valid') return;
  if (entitlements.length > 0) shown.textContent += `, entitlements: ${entitlements.join(' ')}`;
  if (source === 'agent') shown.textContent += `, uses: ${await window.license.use(licenseKey)}`;
  else shown.textContent += ' (last known)';
});
