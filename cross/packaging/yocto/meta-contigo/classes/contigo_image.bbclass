# IMAGE_CLASSES += "contigo_image", then IMAGE_FEATURES += "contigo".
FEATURE_PACKAGES_contigo = "packagegroup-contigo"
